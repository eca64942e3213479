"""What goes on which page: blocks are never cut, and a table that goes on says what it carries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from billing.documents.sheet import BOTTOM, TOP, Sheet


class Block(NamedTuple):
    """Something that needs `height` points; `draw` is told where its upper edge is."""

    height: int
    draw: Callable[[Sheet, int], None]


class TableRow(NamedTuple):
    """A position of the table."""

    block: Block
    heading: Block | None
    """Drawn above it: of the first row of a group."""
    continued: Block
    """Drawn above it instead where it is a page's first row and not its group's."""
    amount_minor: int


@dataclass
class Page:
    """What stands on a page, each with its upper edge."""

    placed: list[tuple[int, Block]] = field(default_factory=list)

    def draw(self, sheet: Sheet) -> None:
        """Draw all of it."""
        for top, block in self.placed:
            block.draw(sheet, top)


class Table(NamedTuple):
    """How a table's own lines are drawn."""

    head: Block
    carried: Callable[[int], Block]
    """From the sum so far, in minor units: below the last row of a page."""
    brought: Callable[[int], Block]
    """The same above the first row of the next."""


class Pages:
    """Blocks placed from above; a new page begins where the next one does not fit."""

    def __init__(self, running_head: Block) -> None:
        """`running_head` stands on each page but the first."""
        self.pages = [Page()]
        self._running_head = running_head
        self._y = TOP

    def place(self, *blocks: Block) -> None:
        """Place blocks that stay together."""
        if self._y - sum(block.height for block in blocks) < BOTTOM and self._y != TOP:
            self._next()
        for block in blocks:
            self._put(block)

    def place_table(self, table: Table, rows: Sequence[TableRow], *, keep: int) -> None:
        """Place a table. Its last row stands on one page with the `keep` points that follow."""
        self.place(table.head)
        so_far = 0
        fresh = True
        for index, row in enumerate(rows):
            headed = _with_heading(row, fresh=fresh and index > 0)
            follows = keep if index == len(rows) - 1 else table.carried(so_far).height
            needed = sum(block.height for block in headed) + follows
            if not fresh and self._y - needed < BOTTOM:
                self._put(table.carried(so_far))
                self._next()
                self._put(table.head)
                self._put(table.brought(so_far))
                headed = _with_heading(row, fresh=True)
            for block in headed:
                self._put(block)
            so_far += row.amount_minor
            fresh = False

    def _put(self, block: Block) -> None:
        self.pages[-1].placed.append((self._y, block))
        self._y -= block.height

    def _next(self) -> None:
        self.pages.append(Page())
        self._y = TOP
        self._put(self._running_head)


def _with_heading(row: TableRow, *, fresh: bool) -> list[Block]:
    heading = row.heading or (row.continued if fresh else None)
    return [row.block] if heading is None else [heading, row.block]

"""The table of an invoice's lines, and that of a credit note's."""

from collections.abc import Callable, Sequence
from itertools import groupby

from billing.documents.blocks import AMOUNTS
from billing.documents.fonts import wrapped
from billing.documents.paging import Block, Table, TableRow
from billing.documents.sheet import GREY, LEFT, RIGHT, Sheet, leading
from billing.documents.wording import UNITS_SHOWN, amount, group_of, unit_price
from billing.domain.invoicing.document import CreditDocument, Document
from billing.domain.invoicing.lines import Line

SIZE = 9
_POSITION, _ITEM, _QUANTITY, _PRICE = 72, 82, 325, 440
"""The right edges of the columns of figures, and the left one of what they are of."""
_ROW = 15

Cells = Callable[[Line], tuple[str, str, str]]
"""What stands in the three columns of figures."""


def invoice_table(document: Document) -> Table:
    """The table's own lines."""
    currency = document.currency
    return _table(("Quantity", f"Price ({currency})", f"Amount ({currency})"), currency)


def invoice_rows(document: Document) -> list[TableRow]:
    """A row for each line, under what it is about."""
    currency = document.currency
    return _rows(
        document.lines,
        lambda line: (
            f"{line.quantity:,}",
            unit_price(line, currency),
            amount(line.amount_minor, currency),
        ),
        [line.amount_minor for line in document.lines],
    )


def credit_table(document: CreditDocument) -> Table:
    """The table's own lines."""
    currency = document.currency
    return _table(("", f"Invoiced ({currency})", f"Credited ({currency})"), currency)


def credit_rows(document: CreditDocument) -> list[TableRow]:
    """A row for each line that is cited."""
    currency = document.currency
    credited = {line.position: line.amount_minor for line in document.note.lines}
    return _rows(
        document.lines,
        lambda line: (
            "",
            amount(line.amount_minor, currency),
            amount(credited[line.position], currency),
        ),
        [credited[line.position] for line in document.lines],
    )


def _table(titles: tuple[str, str, str], currency: str) -> Table:
    def draw(sheet: Sheet, top: int) -> None:
        sheet.band(top - 18, 18)
        sheet.text(_POSITION, top - 12, "No.", size=8, shade=GREY, right=True)
        sheet.text(_ITEM, top - 12, "Item", size=8, shade=GREY)
        for x, title in zip((_QUANTITY, _PRICE, AMOUNTS), titles, strict=True):
            sheet.text(x, top - 12, title, size=8, shade=GREY, right=True)

    return Table(
        Block(24, draw),
        carried=lambda minor: _sum_so_far("Carried forward", minor, currency),
        brought=lambda minor: _sum_so_far("Brought forward", minor, currency),
    )


def _rows(lines: Sequence[Line], cells: Cells, amounts: Sequence[int]) -> list[TableRow]:
    given = iter(amounts)
    return [
        TableRow(
            block=_row(line, cells(line)),
            heading=_heading(said) if first else None,
            continued=_heading(f"{said} (continued)"),
            amount_minor=next(given),
        )
        for said, group in groupby(lines, key=group_of)
        for first, line in _marked_first(list(group))
    ]


def _marked_first(lines: list[Line]) -> list[tuple[bool, Line]]:
    return [(index == 0, line) for index, line in enumerate(lines)]


def _heading(said: str) -> Block:
    lines = wrapped(said, SIZE, (RIGHT - _ITEM) * 1000)

    def draw(sheet: Sheet, top: int) -> None:
        for index, line in enumerate(lines):
            sheet.text(_ITEM, top - 14 - index * leading(SIZE), line, bold=True)

    return Block(6 + len(lines) * leading(SIZE), draw)


def _row(line: Line, cells: tuple[str, str, str]) -> Block:
    def draw(sheet: Sheet, top: int) -> None:
        y = top - 11
        sheet.text(_POSITION, y, str(line.position), shade=GREY, right=True)
        sheet.text(_ITEM, y, UNITS_SHOWN[line.unit])
        for x, cell in zip((_QUANTITY, _PRICE, AMOUNTS), cells, strict=True):
            sheet.text(x, y, cell, right=True)

    return Block(_ROW, draw)


def _sum_so_far(said: str, minor: int, currency: str) -> Block:
    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(_ITEM, top - 14, said, shade=GREY)
        sheet.text(AMOUNTS, top - 14, amount(minor, currency), shade=GREY, right=True)

    return Block(20, draw)


def nothing_used() -> Block:
    """Stands where an invoice has no line."""

    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(LEFT + 32, top - 14, "No billable usage in this period.", shade=GREY)

    return Block(24, draw)

"""The blocks that invoices and credit notes are laid out of."""

from collections.abc import Sequence

from reportlab.lib.colors import Color

from billing.documents.fonts import shortened, wrapped
from billing.documents.paging import Block
from billing.documents.sheet import BOTTOM, FAINT, GREY, LEFT, RIGHT, TOP, Sheet, leading
from billing.domain.invoicing.party import Customer, Seller

SIZE = 9
SMALL = 8
_HALF = 300
"""Where the right half of the head begins."""
_FACTS = 390
"""Where the values of the facts begin."""
_NAME_WIDTH = 330_000
"""Beside a document's number or a page's."""
_PARTY_WIDTH = (_HALF - LEFT - 20) * 1000
AMOUNTS = RIGHT - 4
"""Where amounts of money end."""


def space(height: int) -> Block:
    """Nothing."""
    return Block(height, lambda _sheet, _top: None)


def paragraph(text: str, *, size: int = SIZE, shade: Color = GREY) -> Block:
    """Text across the page."""
    lines = wrapped(text, size, (RIGHT - LEFT) * 1000)

    def draw(sheet: Sheet, top: int) -> None:
        sheet.lines(LEFT, top - size, lines, size=size, shade=shade)

    return Block(len(lines) * leading(size), draw)


def listed(title: str, lines: Sequence[str]) -> Block:
    """A title and lines below it, each as it is unless it is too wide."""
    folded = [part for line in lines for part in wrapped(line, SIZE, (RIGHT - LEFT) * 1000)]

    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(LEFT, top - SIZE, title, bold=True)
        sheet.lines(LEFT, top - SIZE - 15, folded)

    return Block(15 + len(folded) * leading(SIZE) + 8, draw)


def document_head(
    title: str, facts: Sequence[tuple[str, str]], seller: Seller | None, customer: Customer
) -> list[Block]:
    """Who, for whom, and what says which document it is: beside each other where that fits a
    page."""
    who, whom = _from(seller), _to(customer)
    said = _facts(title, facts)
    together = _beside(_below(who, whom), said)
    if together.height <= TOP - BOTTOM:
        return [together]
    return [_beside(who, said), whom]


def _from(seller: Seller | None) -> Block:
    name = [] if seller is None else wrapped(seller.name, 13, _PARTY_WIDTH)
    lines = _folded(["No seller has been set."] if seller is None else seller_lines(seller))

    def draw(sheet: Sheet, top: int) -> None:
        for index, line in enumerate(name):
            sheet.text(LEFT, top - 13 - index * 18, line, size=13, bold=True)
        sheet.lines(LEFT, top - 12 - len(name) * 18, lines, shade=GREY)

    return Block(len(name) * 18 + len(lines) * leading(SIZE) + 24, draw)


def _to(customer: Customer) -> Block:
    name = wrapped(customer.name, 11, _PARTY_WIDTH)
    lines = _folded(customer_lines(customer))

    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(LEFT, top - SMALL, "Bill to", size=SMALL, shade=GREY)
        for index, line in enumerate(name):
            sheet.text(LEFT, top - SMALL - 16 - index * 15, line, size=11, bold=True)
        sheet.lines(LEFT, top - SMALL - 16 - len(name) * 15, lines)

    return Block(16 + len(name) * 15 + len(lines) * leading(SIZE) + 20, draw)


def _facts(title: str, facts: Sequence[tuple[str, str]]) -> Block:
    values = [
        (label, wrapped(value, SIZE, (RIGHT - _FACTS) * 1000)) for label, value in facts if value
    ]

    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(RIGHT, top - 18, title, size=22, bold=True, right=True)
        y = top - 54
        for label, lines in values:
            sheet.text(_HALF, y, label, shade=GREY)
            sheet.lines(_FACTS, y, lines)
            y -= len(lines) * leading(SIZE) + 2

    return Block(66 + sum(len(lines) * leading(SIZE) + 2 for _, lines in values), draw)


def _below(first: Block, second: Block) -> Block:
    def draw(sheet: Sheet, top: int) -> None:
        first.draw(sheet, top)
        second.draw(sheet, top - first.height)

    return Block(first.height + second.height, draw)


def _beside(left: Block, right: Block) -> Block:
    def draw(sheet: Sheet, top: int) -> None:
        left.draw(sheet, top)
        right.draw(sheet, top)

    return Block(max(left.height, right.height), draw)


def running_head(left: str, right: str) -> Block:
    """What later pages begin with."""

    def draw(sheet: Sheet, top: int) -> None:
        sheet.text(LEFT, top - SMALL, shortened(left, SMALL, _NAME_WIDTH), size=SMALL, shade=GREY)
        sheet.text(RIGHT, top - SMALL, right, size=SMALL, shade=GREY, right=True)
        sheet.rule(top - 16)

    return Block(30, draw)


def draw_footer(sheet: Sheet, left: str, page: int, pages: int) -> None:
    """What each page ends with."""
    sheet.rule(52)
    sheet.text(LEFT, 40, shortened(left, SMALL, _NAME_WIDTH), size=SMALL, shade=GREY)
    sheet.text(RIGHT, 40, f"Page {page} of {pages}", size=SMALL, shade=GREY, right=True)


def sum_rows(rows: Sequence[tuple[str, str]], total: tuple[str, str]) -> Block:
    """Sums, and the total below them, on the right."""

    def draw(sheet: Sheet, top: int) -> None:
        sheet.rule(top - 8)
        y = top - 24
        for label, value in rows:
            sheet.text(_HALF, y, label, shade=GREY)
            sheet.text(AMOUNTS, y, value, right=True)
            y -= 15
        sheet.rule(y + 9, left=_HALF, shade=FAINT)
        sheet.text(_HALF, y - 7, total[0], size=11, bold=True)
        sheet.text(AMOUNTS, y - 7, total[1], size=11, bold=True, right=True)

    return Block(24 + len(rows) * 15 + 30, draw)


def seller_lines(seller: Seller) -> list[str]:
    """Where the seller is, and its numbers."""
    return [
        *seller.address,
        seller.country,
        *_said("Tax ID", seller.tax_id),
        *_said("", seller.email),
    ]


def customer_lines(customer: Customer) -> list[str]:
    """Where the customer is, and its numbers."""
    return [
        *customer.address,
        *_said("", customer.country),
        *_said("Tax ID", customer.tax_id),
        *_said("", customer.email),
    ]


def _said(label: str, value: str | None) -> list[str]:
    return [f"{label} {value}".strip()] if value else []


def _folded(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in wrapped(line, SIZE, _PARTY_WIDTH)]

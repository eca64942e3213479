"""Figures as text: aligned tables whose headings carry the units."""

from collections.abc import Sequence
from dataclasses import dataclass

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown. The first column is words, the others are figures."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found, as lines of a label and a sentence, then tables."""

    heading: str
    lines: Sequence[tuple[str, str]]
    tables: Sequence[Table]
    notices: Sequence[str] = ()
    """What a reader must see first: refusals and warnings."""


def text(facts: Facts) -> str:
    """For a terminal or a log; it ends with a newline."""
    width = max((len(label) for label, _ in facts.lines), default=0)
    parts = [facts.heading, *(f"! {notice}" for notice in facts.notices)]
    parts += [f"{label.ljust(width)}  {words}" for label, words in facts.lines]
    for table in facts.tables:
        parts += ["", *table_lines(table)]
    return "\n".join(parts) + "\n"


def table_lines(table: Table) -> list[str]:
    """The caption, the heading and the rows, aligned."""
    cells = [list(table.header), *(list(row) for row in table.rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(table.header))]
    lines = [] if not table.caption else [table.caption]
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return lines


def number(value: float | None, digits: int = 1) -> str:
    """With thousands set off; a dash where there is none."""
    return ABSENT if value is None else f"{value:,.{digits}f}"


def milliseconds(value: float | None) -> str:
    """The figure alone: a decimal below 100 ms, none above."""
    return number(value, 1 if value is None or value < 100 else 0)


def percent(share: float | None) -> str:
    """A share as a figure out of a hundred, without the sign. What is not all is never shown as
    100.0, nor what is something as 0.0."""
    if share is None:
        return ABSENT
    shown = f"{share * 100:.1f}"
    if shown == "100.0" and share < 1:
        return ">99.9"
    return "<0.1" if shown == "0.0" and share > 0 else shown

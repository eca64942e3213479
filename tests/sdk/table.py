"""All rows, in the document's order."""

from itertools import chain

from sdk import rows_basic, rows_output, rows_refused
from sdk.rows import Row

SECTIONS: dict[str, tuple[Row, ...]] = {
    "Asking": rows_basic.ROWS,
    "Shaping the output": rows_output.ROWS,
    "Engine extensions, hygiene and what is not offered": rows_refused.ROWS,
}
"""The sections of the document's table."""
ROWS: tuple[Row, ...] = tuple(chain.from_iterable(SECTIONS.values()))

"""docs/sdks.md says what the rows say."""

from collections import Counter

from sdk import document
from sdk.table import ROWS


def test_the_document_is_that_of_the_rows() -> None:
    """To write it again: `PYTHONPATH=tests python tests/sdk/document.py`."""
    text = document.PATH.read_text()
    assert document.tables() in text


def test_every_row_has_a_name_of_its_own() -> None:
    """Tests and the document tell rows apart by it."""
    assert max(Counter(row.name for row in ROWS).values()) == 1
    assert max(Counter(row.shows for row in ROWS).values()) == 1

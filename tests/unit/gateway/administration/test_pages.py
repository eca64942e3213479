"""Lists in pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.administration.pages import (
    Page,
    check_page_limit,
    cursor_after,
    page_of,
    position_of,
)
from gateway.errors import Unprocessable


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_a_cursor_stands_for_its_position(position: str) -> None:
    """Whatever the position; and it needs no escaping in an address."""
    cursor = cursor_after(position)
    assert position_of(cursor) == position
    assert cursor.isascii()
    assert not set(cursor) & set("+/=%&?# ")


@pytest.mark.parametrize("cursor", ["%", "a", "ä", "_w", "AA", "a b"])
def test_what_no_page_gave_is_refused(cursor: str) -> None:
    """Not base64, not text, or with a zero byte."""
    with pytest.raises(Unprocessable) as refused:
        position_of(cursor)
    assert refused.value.param == "cursor"


def test_one_item_too_many_means_another_page() -> None:
    """And exactly enough means the last one."""
    found = [("a", 1), ("b", 2), ("c", 3)]
    assert page_of(found, 2) == Page([1, 2], cursor_after("b"))
    assert page_of(found, 3) == Page([1, 2, 3], None)
    assert page_of([], 3) == Page([], None)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_has_1_to_1000_items(limit: int) -> None:
    """Everything else is refused."""
    with pytest.raises(Unprocessable):
        check_page_limit(limit)

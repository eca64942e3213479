"""Filters stay on the other pages of a list."""

from gateway.console.forms import Form
from gateway.console.lists import address, given, paging


def test_addresses_hold_what_is_given() -> None:
    """And nothing that is empty."""
    assert address("/p", {"a": None, "b": ""}) == "/p"
    assert address("/p", {"a": "x&y"}) == "/p?a=x%26y"
    assert given(Form.filled({"a": " x ", "b": " ", "c": "y"}), ("b", "a")) == {"a": "x"}


def test_the_filters_of_a_list_stay_on_its_other_pages() -> None:
    """On the last there is no next one, on the first no way back to it."""
    first, later = Form.filled({"a": "1"}), Form.filled({"a": "1", "cursor": "c"})
    kept = {"a": "1"}
    assert paging("/p", first, "c", kept) == {"next_path": "/p?a=1&cursor=c", "first_path": None}
    assert paging("/p", later, None, kept) == {"next_path": None, "first_path": "/p?a=1"}
    assert paging("/p", later, "d") == {"next_path": "/p?cursor=d", "first_path": "/p"}
    assert paging("/p", first, None) == {"next_path": None, "first_path": None}

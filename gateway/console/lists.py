"""Lists, a page at a time: the filters that an address holds, and where the other pages are."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from gateway.console.forms import Form

ROWS = 50
"""Of a list, on one page."""


def given(query: Form, names: Iterable[str]) -> dict[str, str]:
    """The filters of these names that are filled in."""
    return {name: query.text(name) for name in names if query.text(name)}


def address(path: str, values: Mapping[str, str | None]) -> str:
    """A path of the console with what is given of `values` behind it."""
    filled = {name: value for name, value in values.items() if value}
    return f"{path}?{urlencode(filled)}" if filled else path


def paging(
    path: str, query: Form, next_cursor: str | None, kept: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """What `ui.pager` is given of a list at `path`: `next_path`, None on the last page, and
    `first_path`, None on the first. Both hold the filters that are `kept`."""
    filters = kept or {}
    return {
        "next_path": next_cursor and address(path, {**filters, "cursor": next_cursor}),
        "first_path": address(path, filters) if query.text("cursor") else None,
    }

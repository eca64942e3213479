"""Lists in pages: each ends with an opaque cursor that says after which item the next begins."""

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.errors import Unprocessable

Item = TypeVar("Item")
LIMIT_DEFAULT = 100
LIMIT_MAX = 1000


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items in order; `next_cursor` is None on the last page."""

    items: list[Item]
    next_cursor: str | None


def check_page_limit(limit: int) -> int:
    """How many items a page may have: 1 to 1000."""
    if not 1 <= limit <= LIMIT_MAX:
        raise Unprocessable(f"limit: must be 1 to {LIMIT_MAX}", param="limit")
    return limit


def cursor_after(position: str) -> str:
    """The cursor of the page that follows the item sorted at `position`."""
    return base64.urlsafe_b64encode(position.encode()).rstrip(b"=").decode()


def position_of(cursor: str) -> str:
    """The position that a cursor stands for. Raises Unprocessable where it is none of ours."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise Unprocessable(
            "cursor: must be one that an earlier page gave", param="cursor"
        ) from error
    if "\x00" in position:
        raise Unprocessable("cursor: must be one that an earlier page gave", param="cursor")
    return position


def entry_id(cursor: str) -> int:
    """The id that a cursor of a list by number stands for. Raises Unprocessable."""
    position = position_of(cursor)
    if not position.isascii() or not position.isdigit() or len(position) > 18:
        raise Unprocessable("cursor: must be one that an earlier page gave", param="cursor")
    return int(position)


def page_of(found: list[tuple[str, Item]], limit: int) -> Page[Item]:
    """A page of up to `limit` of (position, item), of which one more was asked for."""
    items = [item for _, item in found[:limit]]
    more = len(found) > limit
    return Page(items, cursor_after(found[limit - 1][0]) if more else None)

"""What an entry of the audit log says has changed: field by field, only what differs. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

SHOWN_CHARACTERS_MAX = 400
LINE_CHARACTERS_MAX = 40
ABSENT = object()
"""A field that is not there, which is another thing than one that is null."""
_BLANK = (None, ABSENT)


class Sort(StrEnum):
    """How a field differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class Difference:
    """One field, by its path such as `limits.tokens_per_minute`. Before and after are texts, None
    where there was no such field."""

    field: str
    before: str | None
    after: str | None

    @property
    def sort(self) -> Sort:
        """Whether the field came, went or changed."""
        if self.before is None:
            return Sort.ADDED
        return Sort.REMOVED if self.after is None else Sort.CHANGED


def differences(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[Difference]:
    """Every field that differs, in the order in which they are stored. Of what was made or ended
    as a whole, fields that say nothing (null) are left out."""
    return list(
        _within("", ABSENT if before is None else before, ABSENT if after is None else after)
    )


def summary(found: list[Difference]) -> str:
    """What differs in one line: the first two fields, and how many more."""
    told = [each for each in found if each.field != "id"]
    more = len(told) - 2
    shown = ", ".join(_line(each) for each in told[:2])
    return f"{shown} and {more} more" if more > 0 else shown


def _line(each: Difference) -> str:
    before, after = (None if text is None else _cut(text) for text in (each.before, each.after))
    if before is None or after is None:
        return f"{each.field} {after or before}"
    return f"{each.field} {before} → {after}"


def _cut(text: str) -> str:
    return text if len(text) <= LINE_CHARACTERS_MAX else text[:LINE_CHARACTERS_MAX] + "…"


def _within(path: str, before: object, after: object) -> Iterator[Difference]:
    one, other = _fields(before), _fields(after)
    # One side may be null or absent as a whole: the other's fields then came or went.
    has_fields = one is not None or before in _BLANK, other is not None or after in _BLANK
    if all(has_fields) and (one or other):
        one, other = one or {}, other or {}
        for name in {**one, **other}:
            below = f"{path}.{name}" if path else name
            yield from _within(below, one.get(name, ABSENT), other.get(name, ABSENT))
    elif not _same(before, after):
        name = path.rpartition(".")[2]
        yield Difference(path, _shown(name, before), _shown(name, after))


def _same(before: object, after: object) -> bool:
    if before in _BLANK and after in _BLANK:
        return True
    return type(before) is type(after) and before == after


def _fields(value: object) -> dict[str, object] | None:
    """The parts of what has parts that are compared one by one: objects, and lists of objects."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return {str(number): each for number, each in enumerate(value, 1)}
    return None


def _shown(name: str, value: object) -> str | None:
    if value is ABSENT:
        return None
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith(("_at_ms", "_until_ms", "_from_ms")):
        return _instant(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = ", ".join(map(str, value)) or "empty"
    elif isinstance(value, str):
        text = value or "empty"
    else:
        text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "…"


def _instant(at_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(at_ms // 1000, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return f"{at_ms:,}"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"

"""Instants as integer Unix milliseconds, and as aware UTC times at the edges."""

from datetime import UTC, datetime


def ms_of(instant: datetime | None) -> int | None:
    """Unix milliseconds of an aware time; parts of a millisecond are cut off."""
    if instant is None:
        return None
    return int(instant.replace(microsecond=0).timestamp()) * 1000 + instant.microsecond // 1000


def instant_of(at_ms: int | None) -> datetime | None:
    """The aware UTC time of Unix milliseconds."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms // 1000, tz=UTC).replace(microsecond=at_ms % 1000 * 1000)


def shown(at_ms: int | None) -> str | None:
    """Unix milliseconds as RFC 3339 in UTC: `2026-11-29T16:12:00.000Z`."""
    instant = instant_of(at_ms)
    if instant is None:
        return None
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")

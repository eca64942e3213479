"""What may be missing of a time, and what may not."""

import pytest

from gateway.domain.completeness import (
    LASTS_MS_MAX,
    LATE_MS,
    NOT_KNOWN,
    Completeness,
    completeness,
)
from gateway.domain.presence import GONE_MS, NOT_SHIPPED, Heartbeat, Standing

NOW = 2_000_000_000_000
SHIPPED = Heartbeat(7, 40, 0, 40)


def alive(late_ms: int = 300, journal: Heartbeat | None = SHIPPED) -> Standing:
    """Seen just now."""
    return Standing(NOW - 100, NOW - late_ms, journal)


def gone(journal: Heartbeat | None, for_ms: int = GONE_MS) -> Standing:
    """Last seen so long ago, and had shipped through a moment before."""
    return Standing(NOW - for_ms, NOW - for_ms - 300, journal)


def test_the_slowest_says_how_far() -> None:
    """All that had ended by then is there; nobody is late."""
    found = completeness({"a": alive(300), "b": alive(900)}, now_ms=NOW)
    assert found == Completeness(NOW - 900, NOW, ())
    assert found.lag_ms == 900
    assert found.covers(None)
    assert found.covers(NOW)


@pytest.mark.parametrize(("late_ms", "is_late"), [(LATE_MS, False), (LATE_MS + 1, True)])
def test_one_that_lives_and_cannot_ship(late_ms: int, is_late: bool) -> None:
    """Whatever its heartbeat says: it may have recorded since."""
    found = completeness({"a": alive(), "b": alive(late_ms)}, now_ms=NOW)
    assert found.behind == (("b",) if is_late else ())
    assert found.covers(None) is not is_late


@pytest.mark.parametrize(
    ("journal", "counts"),
    [
        (SHIPPED, False),
        (Heartbeat(7, 41, 0, 40), True),
        (Heartbeat(7, 40, 1, 40), True),
        (Heartbeat(7, 40, 0, NOT_SHIPPED), True),
        (None, True),
    ],
    ids=["shipped", "unshipped", "open", "earlier boots", "never said"],
)
def test_one_that_is_gone(journal: Heartbeat | None, counts: bool) -> None:
    """It is waited for only where something of it is missing, or may be."""
    found = completeness({"a": alive(), "b": gone(journal)}, now_ms=NOW)
    assert found.behind == (("b",) if counts else ())
    assert found.through_ms == (NOW - GONE_MS - 300 if counts else NOW - 300)


def test_one_that_was_seen_a_moment_ago_is_not_gone() -> None:
    """For a minute it may be about to come back."""
    found = completeness({"b": gone(SHIPPED, for_ms=GONE_MS - 1)}, now_ms=NOW)
    assert found.behind == ("b",)


def test_what_only_postgres_remembers() -> None:
    """Redis came back empty: how far it was, nobody knows. One that is in the list speaks for
    itself."""
    found = completeness({"a": alive()}, now_ms=NOW, lacking=["a", "z"])
    assert (found.through_ms, found.behind, found.lag_ms) == (None, ("z",), None)
    assert not found.covers(None)
    assert completeness({"a": alive()}, now_ms=NOW, lacking=["a"]).behind == ()


def test_a_time_long_before() -> None:
    """What a late gateway has not shipped ended after it was last heard, and began a day before
    that at most."""
    found = completeness({"b": gone(None)}, now_ms=NOW)
    assert found.through_ms is not None
    edge_ms = found.through_ms - LASTS_MS_MAX
    assert found.covers(edge_ms)
    assert not found.covers(edge_ms + 1)
    assert not found.covers(None)


def test_what_is_not_known_is_not_complete() -> None:
    """A store is away; a gateway has never shipped through anything; nobody is there at all."""
    assert not NOT_KNOWN.covers(0)
    assert NOT_KNOWN.lag_ms is None
    fresh = completeness({"a": Standing(NOW, 0)}, now_ms=NOW)
    assert (fresh.through_ms, fresh.behind) == (None, ("a",))
    assert not fresh.covers(0)
    assert completeness({}, now_ms=NOW).through_ms == NOW


def test_nobody_is_ahead_of_now() -> None:
    """Instants are handed out a little early: none is shown."""
    assert completeness({"a": alive(-5)}, now_ms=NOW).through_ms == NOW

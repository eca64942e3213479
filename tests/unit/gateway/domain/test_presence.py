import pytest

from gateway.domain.presence import (
    FORGET_MS,
    GONE_MS,
    HEARD_MS,
    Standing,
    forgotten,
    heartbeat,
    is_whole,
    waited_for,
)

NOW_MS = 1_800_000_000_000
ASKED_MS = NOW_MS - 500


def waiting(**gateways: Standing) -> tuple[str, ...]:
    return waited_for(gateways, ASKED_MS, now_ms=NOW_MS)


def test_who_has_shipped_through_the_instant_is_not_waited_for() -> None:
    """Through exactly that instant is enough; a millisecond less is not."""
    done, late = Standing(NOW_MS, ASKED_MS), Standing(NOW_MS, ASKED_MS - 1)
    assert waiting(done=done) == ()
    assert waiting(done=done, late=late) == ("late",)


@pytest.mark.parametrize(
    ("shipped", "seq", "is_shipped"),
    [(None, -1, False), ((2, 99), -1, False), ((3, 6), 6, False), ((3, 7), 7, True)],
)
def test_what_is_shipped_counts_only_in_the_same_boot(
    shipped: tuple[int, int] | None, seq: int, is_shipped: bool
) -> None:
    """While a boot before is not in Postgres whole, or it is not known, nothing of this one is;
    also where this one is empty."""
    told = heartbeat(3, 7, open_count=1, shipped=shipped)
    assert (told.shipped_seq, told.is_shipped) == (seq, is_shipped)
    assert heartbeat(3, 0, open_count=0, shipped=shipped).is_shipped is (seq >= 0)


def test_a_gateway_not_seen_for_a_minute_no_longer_counts() -> None:
    """Up to then it holds everything up, as one does that lives and cannot ship."""
    gone = Standing(NOW_MS - GONE_MS, 0)
    lately = Standing(NOW_MS - GONE_MS + 1, 0)
    assert waiting(gone=gone) == ()
    assert waiting(gone=gone, lately=lately) == ("lately",)


@pytest.mark.parametrize(
    ("began_ms", "born_ms", "whole"),
    [
        (None, 0, False),
        (NOW_MS - HEARD_MS, NOW_MS - HEARD_MS, True),
        (NOW_MS - HEARD_MS + 1, NOW_MS - HEARD_MS, False),
        (NOW_MS - HEARD_MS + 1, 1, False),
        (NOW_MS, 0, True),
    ],
    ids=["no list", "old enough", "too young", "lost long ago", "of a store that lost nothing"],
)
def test_a_young_list_may_lack_somebody(began_ms: int | None, born_ms: int, whole: bool) -> None:
    """Unless there cannot have been one before it."""
    assert is_whole(began_ms=began_ms, born_ms=born_ms, now_ms=NOW_MS) is whole


def test_the_list_keeps_nobody_for_ever() -> None:
    """A gateway not seen for a day is forgotten, any other is kept."""
    gateways = {"old": Standing(NOW_MS - FORGET_MS, 0), "other": Standing(NOW_MS - GONE_MS, 0)}
    assert forgotten(gateways, now_ms=NOW_MS) == ("old",)

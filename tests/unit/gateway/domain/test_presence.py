from gateway.domain.presence import (
    FORGET_MS,
    GONE_MS,
    HEARD_MS,
    NOT_HEARD,
    Standing,
    forgotten,
    waited_for,
)

NOW_MS = 1_800_000_000_000
ASKED_MS = NOW_MS - 500


def waiting(began_ms: int | None = 0, **gateways: Standing) -> tuple[str, ...]:
    return waited_for(gateways, ASKED_MS, began_ms=began_ms, now_ms=NOW_MS)


def test_who_has_shipped_through_the_instant_is_not_waited_for() -> None:
    """Through exactly that instant is enough; a millisecond less is not."""
    done, late = Standing(NOW_MS, ASKED_MS), Standing(NOW_MS, ASKED_MS - 1)
    assert waiting(done=done) == ()
    assert waiting(done=done, late=late) == ("late",)


def test_a_gateway_not_seen_for_a_minute_no_longer_counts() -> None:
    """Up to then it holds everything up, as one does that lives and cannot ship."""
    gone = Standing(NOW_MS - GONE_MS, 0)
    lately = Standing(NOW_MS - GONE_MS + 1, 0)
    assert waiting(gone=gone) == ()
    assert waiting(gone=gone, lately=lately) == ("lately",)


def test_a_young_list_may_lack_somebody() -> None:
    """Where there is no list, or one that not everybody can have entered yet, nobody can say."""
    done = Standing(NOW_MS, NOW_MS)
    assert waiting(None) == (NOT_HEARD,)
    assert waiting(NOW_MS - HEARD_MS + 1, done=done) == (NOT_HEARD,)
    assert waiting(NOW_MS - HEARD_MS, done=done) == ()


def test_the_list_keeps_nobody_for_ever() -> None:
    """A gateway not seen for a day is forgotten, any other is kept."""
    gateways = {"old": Standing(NOW_MS - FORGET_MS, 0), "other": Standing(NOW_MS - GONE_MS, 0)}
    assert forgotten(gateways, now_ms=NOW_MS) == ("old",)

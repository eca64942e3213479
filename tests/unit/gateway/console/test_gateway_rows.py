"""Gateways as pages show them."""

from gateway.adapters.presence import Census
from gateway.console.gateway_rows import gateway_rows
from gateway.domain.presence import GONE_MS, HEARD_MS, Heartbeat, Standing

NOW_MS = 1_770_000_000_000


def test_who_is_heard_of_is_told_from_who_is_silent_and_who_is_gone() -> None:
    """By id. What one that is gone runs, or one that never said, is not known and no 0."""
    silences_ms = {"gw-c": 0, "gw-a": HEARD_MS + 1, "gw-b": GONE_MS, "gw-d": HEARD_MS}
    standings = {
        name: Standing(NOW_MS - silent_ms, 0, Heartbeat(1, 9, 4, 9))
        for name, silent_ms in silences_ms.items()
    }
    standings["gw-e"] = Standing(NOW_MS + 50, 0)
    rows = gateway_rows(Census(standings, NOW_MS, True))
    assert [(row["id"], row["kind"], row["running"]) for row in rows] == [
        ("gw-a", "warn", 4),
        ("gw-b", "bad", None),
        ("gw-c", "good", 4),
        ("gw-d", "good", 4),
        ("gw-e", "good", None),
    ]
    assert [row["silent_ms"] for row in rows] == [HEARD_MS + 1, GONE_MS, 0, HEARD_MS, 0]


def test_what_is_not_in_postgres_yet_is_said() -> None:
    """Of the journal that a gateway writes now."""
    for shipped_seq, expected in ((9, True), (8, False), (-1, False)):
        standing = Standing(NOW_MS, 0, Heartbeat(1, 9, 0, shipped_seq))
        (row,) = gateway_rows(Census({"gw": standing}, NOW_MS, True))
        assert row["is_shipped"] is expected
    (row,) = gateway_rows(Census({"gw": Standing(NOW_MS, 0)}, NOW_MS, True))
    assert row["is_shipped"] is None

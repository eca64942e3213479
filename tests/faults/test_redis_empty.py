"""Redis comes back with nothing in it while requests run: nothing is admitted that it cannot know
to be within the limits, and what runs is counted again."""

import time
from collections.abc import Callable

import pytest
from breakable_store import Store
from redis_faults import (
    CUT_OFF,
    RENEW_MS,
    TTL_MS,
    WITH_STORE,
    TwoGateways,
    of_a_new_tenant,
)

pytestmark = [pytest.mark.fault, pytest.mark.timeout(150)]
MINUTE_S = 60.0
WINDOW_S = 61.0
"""Of the last second nobody knows in which part of it it was charged."""
STORE_AWAY_MS = 1_000
"""When to come back, where the store is away."""
AWAY_AGAIN_S = 0.5
"""A store that stood still decides again within that."""
PLACE_FREE_S = 1.0


def flush(store: Store) -> None:
    """Without anybody's connection ending."""
    with store.client() as client:
        client.flushall()


def replace(store: Store) -> None:
    """By another server at its address, with a data folder of its own."""
    store.kill()
    store.start(empty=True)


EMPTIED = pytest.mark.parametrize("empty", [flush, replace])


def until_rest(system: TwoGateways) -> None:
    """Nothing is held, within three lease times: one is promised."""
    deadline = time.monotonic() + 3 * TTL_MS / 1000
    while system.limits().get("tenant", {}).get("sequences_running") != 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.timeout(200)
def test_tokens_wait_for_a_minute(gateways: TwoGateways) -> None:
    """DESIGN 10, INV-3: what was charged before is unknown, so nobody is admitted until it has aged
    out; then at once. Who has no limit waits for nothing. (Comes first: after a loss it would wait
    itself.)"""
    system = of_a_new_tenant(gateways, tpm=100)
    free = system.with_new_tenant()
    while (used := system.timed(max_tokens=20)).outcome != "rate_limit_exceeded":
        if used.outcome == "200":
            last_at = used.ended
    emptied_at = time.monotonic()
    flush(system.store)
    assert isinstance(free, TwoGateways)
    free.served()
    wait_ms = 0
    # A store that got no core for a moment is taken for one that is away: that is told shorter.
    while wait_ms <= STORE_AWAY_MS:
        refused = system.timed(max_tokens=20)
        assert refused.outcome == "admission_unavailable"
        wait_ms = int(refused.reply.headers["retry-after-ms"])
    since_ms = (refused.ended - emptied_at) * 1000
    assert MINUTE_S * 1000 - since_ms < wait_ms <= MINUTE_S * 1000, "the longest that is told"
    while time.monotonic() < emptied_at + MINUTE_S - 0.5:
        assert system.timed(max_tokens=20).outcome == "admission_unavailable"
        time.sleep(0.15)
    while (asked := system.timed(max_tokens=20)).outcome != "200":
        assert asked.outcome == "admission_unavailable"
        assert asked.began < emptied_at + WINDOW_S + 3 * AWAY_AGAIN_S
        time.sleep(0.05)
    assert time.monotonic() - last_at > MINUTE_S


@EMPTIED
def test_sequences_wait_for_one_lease_time(
    gateways: TwoGateways, empty: Callable[[Store], None]
) -> None:
    """DESIGN 10, INV-2: what runs at either gateway is held again long before anybody may be
    admitted beside it; a 503 says when; a word and a metric say why."""
    system = of_a_new_tenant(gateways, max_sequences=2)
    cursor = system.ledger_end
    recreated = [system.metric("weir_leases_recreated_total", at) for at in (0, 1)]
    first, second = (system.streams(1, at, max_tokens=900)[0] for at in (CUT_OFF, WITH_STORE))
    try:
        ask_while_it_knows_too_little(system, empty)
        held_again = [system.metric("weir_leases_recreated_total", at) for at in (0, 1)]
        assert [now - then for now, then in zip(held_again, recreated, strict=True)] == [1, 1]
        first.leave()
        left_at = time.monotonic()
        while system.timed().outcome != "200":
            assert time.monotonic() < left_at + 3 * PLACE_FREE_S, "the place of the one that left"
    finally:
        for stream in (first, second):
            stream.leave()
    until_rest(system)
    system.assert_never_more(2, cursor, first, second)


def ask_while_it_knows_too_little(system: TwoGateways, empty: Callable[[Store], None]) -> None:
    """First nobody is admitted, whoever asks; then nobody beside the two that run."""
    empty(system.store)
    emptied_at = time.monotonic()
    outcomes: dict[str, float] = {}
    words: set[str] = set()
    known_s = TTL_MS / 1000 + 1.0
    while (since_s := time.monotonic() - emptied_at) < known_s or (
        "rate_limit_exceeded" not in outcomes and since_s < 3 * known_s
    ):
        for at in (CUT_OFF, WITH_STORE):
            asked = system.timed(at)
            outcomes.setdefault(asked.outcome, time.monotonic() - emptied_at)
            if asked.outcome == "admission_unavailable":
                assert 1 <= int(asked.reply.headers["retry-after"]) <= TTL_MS / 1000 + 1
            words |= set(system.words(at)[1])
    assert set(outcomes) == {"admission_unavailable", "rate_limit_exceeded"}
    assert outcomes["admission_unavailable"] < TTL_MS / 1000
    assert outcomes["rate_limit_exceeded"] > (TTL_MS - RENEW_MS) / 1000
    assert "redis_empty" in words

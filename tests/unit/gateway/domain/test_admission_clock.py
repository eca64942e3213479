"""Leases and pauses under a clock that steps back, to stay there or to return (INV-2)."""

from dataclasses import replace

import pytest
from admission_store import Store
from memory_ports import TTL_MS

from gateway.domain.admission import Beginning, Granted, Paused, Refused, TenantState
from gateway.domain.tenant import Limits

HOUR_MS = 3_600_000


def test_a_dead_lease_lasts_one_lease_time_of_the_new_clock() -> None:
    """Nobody renews it: an hour back does not hold its sequences for an hour."""
    store = Store(Limits(max_sequences=1))
    store.acquire("dead", 5)
    store.now_ms -= HOUR_MS
    assert isinstance(store.acquire("b", 5), Refused)
    store.now_ms += TTL_MS - 1
    assert isinstance(store.acquire("b", 5), Refused)
    store.now_ms += 1
    assert isinstance(store.acquire("b", 5), Granted)


def test_a_lease_that_is_renewed_under_the_new_clock_stays() -> None:
    """INV-2: cutting takes nothing from a holder that renews in time."""
    store = Store(Limits(max_sequences=1))
    store.acquire("a", 5)
    lease = replace(store.state.leases["a"])
    store.now_ms -= HOUR_MS
    for _ in range(5):
        assert isinstance(store.acquire("b", 5), Refused)
        store.now_ms += TTL_MS - 1
        assert store.renew("a", lease).renewed == 1


@pytest.mark.parametrize("renews", [True, False])
def test_one_look_at_a_wrong_time_ends_no_lease(renews: bool) -> None:
    """INV-2: the clock returns: what it jumped over is kept for one lease time, and no longer."""
    store = Store(Limits(max_sequences=1))
    store.acquire("a", 5)
    lease = replace(store.state.leases["a"])
    store.now_ms -= HOUR_MS
    if renews:
        store.renew("a", lease)
    assert isinstance(store.acquire("b", 5), Refused)
    store.now_ms += HOUR_MS + 2_000
    assert isinstance(store.acquire("b", 5), Refused)
    store.now_ms += TTL_MS - 1
    assert isinstance(store.acquire("b", 5), Refused)
    store.now_ms += 1
    assert isinstance(store.acquire("b", 5), Granted)


def test_a_pause_lasts_as_long_as_one_that_begins_now() -> None:
    """The store came back empty, then the clock stepped back an hour."""
    store = Store(Limits(max_sequences=1))
    store.state = TenantState(beginning=Beginning(store.now_ms + TTL_MS, store.now_ms + 61_000))
    store.now_ms -= HOUR_MS
    assert store.acquire("a", 5) == Paused(store.now_ms + TTL_MS, store.now_ms)
    store.now_ms += TTL_MS
    assert isinstance(store.acquire("a", 5), Granted)


def test_one_look_at_a_wrong_time_ends_no_pause() -> None:
    """The clock returns: the pause ends when it would have."""
    store = Store(Limits(tpm=100))
    until_ms = store.now_ms + 61_000
    store.state = TenantState(beginning=Beginning(store.now_ms + TTL_MS, until_ms))
    store.now_ms -= HOUR_MS
    assert isinstance(store.acquire("a", 5), Paused)
    store.now_ms += HOUR_MS + 1_000
    assert store.acquire("a", 5) == Paused(until_ms, store.now_ms)
    store.now_ms = until_ms
    assert isinstance(store.acquire("a", 5), Granted)


def test_a_small_step_back_is_waited_out() -> None:
    """Up to a minute: expiries stay as they were."""
    store = Store(Limits(max_sequences=1))
    store.acquire("dead", 5)
    until_ms = store.now_ms + TTL_MS
    store.now_ms -= 60_000
    assert isinstance(store.acquire("b", 5), Refused)
    assert store.state.leases["dead"].expires_at_ms == until_ms

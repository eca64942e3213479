"""Reports of concurrency limits that leaked or let too many run."""

from dataclasses import replace

import pytest
from admission_store import Store, granted, refused, scopes
from memory_ports import TTL_MS

from gateway.domain.admission import Granted, Kind, Refused
from gateway.domain.tenant import Limits, ModelLimits


def test_c03_traffic_does_not_keep_what_is_lost() -> None:
    """C03: three of five are lost; the two others renew and new ones come every second: after the
    lost ones' own lease time three may run again, no sooner and no later."""
    store = Store(Limits(max_sequences=5))
    for name in ("lost-1", "lost-2", "lost-3", "kept-1", "kept-2"):
        store.acquire(name)
    kept = {name: replace(store.state.leases[name]) for name in ("kept-1", "kept-2")}
    granted_at = []
    for second in range(TTL_MS // 1000 + 1):
        for name, lease in kept.items():
            assert store.renew(name, lease).renewed == 1
        if isinstance(store.acquire(f"new-{second}"), Granted):
            granted_at.append(second)
        store.now_ms += 1_000
    assert granted_at == [TTL_MS // 1000]
    assert store.state.running("tenant") == 3


def test_c05_a_burst_stops_at_the_limit() -> None:
    """C05: two hundred at once, ten of them run; each one that ends lets exactly one in."""
    store = Store(Limits(max_sequences=10))
    decisions = [store.acquire(f"{number:03}") for number in range(200)]
    assert sum(isinstance(decision, Granted) for decision in decisions) == 10
    store.settle("000", 1)
    assert [isinstance(store.acquire(name), Granted) for name in ("x", "y")] == [True, False]


def test_c08_a_key_and_a_tenant_have_each_their_own() -> None:
    """C08: a key may run one, its tenant two: the second of one key waits for the key, the third of
    the tenant for the tenant."""
    store = Store()
    tenant, first = Limits(max_sequences=2), Limits(max_sequences=1)
    offered = scopes(tenant=tenant, key=first)
    others = tuple(
        replace(scope, scope=scope.scope.replace("key-1", "key-2"))
        for scope in scopes(tenant=tenant)
    )
    assert isinstance(store.acquire("a", offered=offered), Granted)
    assert refused(store.acquire("b", offered=offered)).limits.scope == "key:key-1"
    assert isinstance(store.acquire("c", offered=others), Granted)
    no = refused(store.acquire("d", offered=others))
    assert (no.kind, no.limits.scope, no.limit, no.used) == (Kind.SEQUENCES, "tenant", 2, 2)


def test_c09_a_full_model_does_not_close_another() -> None:
    """C09: a key may run ten, two of them of one model: the third of it waits, also where eight of
    another run; then the key itself is full."""
    key = Limits(max_sequences=10, models={"m": ModelLimits(max_sequences=2)})
    store = Store()
    on_m, on_other = scopes(key=key), scopes(key=key, model="other")
    for number in range(2):
        assert isinstance(store.acquire(f"m-{number}", offered=on_m), Granted)
    for number in range(8):
        assert refused(store.acquire("third", offered=on_m)).limits.scope == "key:key-1/model:m"
        assert isinstance(store.acquire(f"o-{number}", offered=on_other), Granted)
    assert refused(store.acquire("ninth", offered=on_other)).limits.scope == "key:key-1"


@pytest.mark.parametrize("prompts", [1, 3])
def test_c10_each_choice_of_each_prompt_is_one(prompts: int) -> None:
    """C10: a limit of 12: `n` of 4 takes 4, with three prompts 12; one more does not fit."""
    store = Store(Limits(max_sequences=12))
    assert granted(store.acquire("a", sequences=4 * prompts)).uses[0].sequences == 4 * prompts
    assert isinstance(store.acquire("b", sequences=12 - 4 * prompts + 1), Refused)


def test_c11_ten_thousand_that_end_anyhow_leave_nothing() -> None:
    """C11: one in a hundred is aborted, some never run, some settle twice: none is held, and the
    count is 0 at rest, not a little more each day."""
    store = Store(Limits(max_sequences=4))
    for number in range(10_000):
        rid = f"{number:05}"
        assert isinstance(store.acquire(rid), Granted)
        store.settle(rid, 1, ran=number % 7 != 0)
        if number % 100 == 0:
            store.settle(rid, 0, ran=False)
        store.now_ms += 3_997
    assert store.state.running("tenant") == 0
    assert (store.state.leases, store.state.lapsed) == ({}, {})
    assert granted(store.acquire("all", sequences=4)).uses[0].sequences == 4


@pytest.mark.parametrize("ran", [True, False])
def test_l23_a_failure_gives_its_sequence_back(ran: bool) -> None:
    """L23, C02: twenty that fail, one after the other, with a limit of five: none of them keeps its
    sequence, whether or not it reached an engine. The limit itself is the one that was set: no
    measured latency moves it."""
    store = Store(Limits(max_sequences=5))
    for number in range(20):
        assert granted(store.acquire(f"{number}")).uses[0].limits.max_sequences == 5
        store.settle(f"{number}", 0, ran=ran)
    assert granted(store.acquire("after", sequences=5)).uses[0].sequences == 5


def test_l16_what_is_over_is_taken_away_before_it_is_counted() -> None:
    """L16: a lease that has just lapsed and a charge that has just aged out refuse nobody."""
    store = Store(Limits(max_sequences=1, tpm=10, rpm=1))
    store.acquire("a", 10)
    store.now_ms += TTL_MS
    no = refused(store.acquire("b", 10))
    assert no.kind is Kind.REQUESTS, "its sequence is free, its request still counts"
    assert no.retry_after_ms is not None
    store.now_ms += no.retry_after_ms - 1
    assert isinstance(store.acquire("c", 10), Refused)
    store.now_ms += 1
    assert isinstance(store.acquire("d", 10), Granted)

"""Leases: repeated, renewed, lapsed, lost and settled, once each (INV-1, INV-2)."""

from dataclasses import replace

import hypothesis.strategies as st
from admission_store import Store, granted
from hypothesis import given
from memory_ports import TTL_MS

from gateway.domain.admission import LAPSED_KEEP_MS, Granted, Refused, Settled, TenantState
from gateway.domain.tenant import Limits


def test_reservations_of_a_dead_gateway_lapse() -> None:
    """R10, R28, C03: nobody renews: the sequences are free after the time to live, while others'
    traffic goes on, and a late settlement still charges, once."""
    store = Store(Limits(max_sequences=2))
    store.acquire("dead", 50)
    store.now_ms += TTL_MS - 1
    store.acquire("other", 1)
    assert isinstance(store.acquire("third", 1), Refused)
    store.now_ms += 1
    assert isinstance(store.acquire("third", 1), Granted)
    assert store.settle("dead", 80) is Settled.LAPSED
    assert store.tokens == 82
    assert store.settle("dead", 80) is Settled.REPEATED
    assert store.tokens == 82


def test_repeating_an_acquisition_holds_once() -> None:
    """What was sent twice because its reply was lost is one lease and one charge."""
    store = Store(Limits(tpm=100))
    first = granted(store.acquire("a", 60))
    again = granted(store.acquire("a", 60))
    assert (again.reserved_tokens, again.second) == (first.reserved_tokens, first.second)
    assert (store.tokens, store.requests) == (60, 1)


def test_an_acquisition_that_was_given_up_holds_nothing_later() -> None:
    """The settlement overtook the acquisition: that one is refused and charges nothing."""
    store = Store()
    assert store.settle("a", 0, ran=False) is Settled.UNKNOWN
    assert isinstance(store.acquire("a", 60), Refused)
    assert store.state.leases == {}
    assert store.tokens == 0


def test_a_renewal_keeps_and_takes_up_again() -> None:
    """Renewed while held, resumed after a lapse, left alone once settled."""
    store = Store()
    store.acquire("a", 10)
    lease = replace(store.state.leases["a"])
    assert store.renew("a", lease).renewed == 1
    store.now_ms += TTL_MS
    assert store.renew("a", lease).resumed == 1
    assert store.state.running("tenant") == 1
    store.settle("a", 10)
    assert store.renew("a", lease).over == 1
    assert store.state.leases == {}


def test_a_lease_that_the_store_lost_is_held_and_charged_again() -> None:
    """A store that lost its last writes is told of them again: sequences, tokens and request, in
    the present second; and the settlement takes back from there (INV-2, INV-3)."""
    store = Store()
    store.acquire("a", 1000)
    lease = replace(store.state.leases["a"])
    store.state = TenantState()
    store.now_ms += 5_000
    store.acquire("b", 60)
    assert store.renew("a", lease).recreated == 1
    assert (store.state.running("tenant"), store.tokens, store.requests) == (2, 1060, 2)
    assert store.settle("a", 10) is Settled.LIVE
    assert store.tokens == 70


def test_what_was_charged_long_ago_is_not_charged_again() -> None:
    """A lost lease whose second no longer counts is held, charged nowhere, and refunds nothing of
    what others charged since (INV-3)."""
    store = Store()
    store.acquire("a", 1000)
    lease = replace(store.state.leases["a"])
    store.state = TenantState()
    store.now_ms += 61_000
    store.acquire("b", 60)
    assert store.renew("a", lease).recreated == 1
    assert store.settle("a", 10) is Settled.LIVE
    assert store.tokens == 60


def test_a_lapsed_lease_is_forgotten_after_its_time() -> None:
    """What nobody ever settles does not stay for ever (INV-1)."""
    store = Store()
    store.acquire("a")
    store.now_ms += TTL_MS
    store.acquire("b")
    store.now_ms += LAPSED_KEEP_MS
    assert store.settle("a", 1) is Settled.UNKNOWN
    assert store.state.lapsed.keys() == {"b"}


@given(
    limit=st.integers(0, 8),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["acquire", "settle", "renew", "wait"]),
            st.integers(0, 9),
            st.integers(1, 4),
        ),
        max_size=60,
    ),
)
def test_sequences_never_pass_the_limit(limit: int, steps: list[tuple[str, int, int]]) -> None:
    """INV-1, INV-2: after every admission at most the limit is held, while holders renew in time,
    and once all have settled nothing is."""
    store = Store(Limits(max_sequences=limit))
    for number, (step, pick, sequences) in enumerate(steps):
        held = sorted(store.state.leases)
        if step == "acquire":
            store.acquire(f"{number:03d}", sequences=sequences)
        elif step == "wait":
            for rid in held:
                store.renew(rid, store.state.leases[rid])
            store.now_ms += TTL_MS - 1
        elif held and step == "settle":
            store.settle(held[pick % len(held)], 1)
        elif held:
            rid = held[pick % len(held)]
            store.renew(rid, store.state.leases[rid])
        assert store.state.running("tenant") <= limit
    for rid in sorted(store.state.leases):
        store.settle(rid, 1)
    assert store.state.leases == store.state.lapsed == {}

"""Budgets: reserved, spent, known, and summed up again after a loss (B01, B06, INV-4)."""

import pytest
from admission_store import Store, granted, refused
from memory_ports import TTL_MS

from gateway.domain import admission
from gateway.domain.admission import Demand, Kind, MoneyUnknown, Settled
from gateway.domain.scopes import ScopeLimits

MONTH = "2027-01"
SCOPES = ("tenant", "key:k", "model:m", "key:k/model:m")


def a_store(budget_pico: int | None = 100, *, known: bool = True) -> Store:
    store = Store()
    store.offered = tuple(
        ScopeLimits(name, 1, None, None, None, budget_pico if name == "tenant" else None)
        for name in SCOPES
    )
    if known:
        know(store, {})
    return store


def know(store: Store, spent: dict[str, int]) -> None:
    begun = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    assert begun is not None
    assert admission.finish_month(store.state, MONTH, begun.at_ms, spent, now_ms=store.now_ms)


def ask(store: Store, rid: str, cost_pico: int) -> object:
    demand = Demand(rid, 1, 1, 1, cost_pico, MONTH)
    return admission.acquire(store.state, demand, store.offered, now_ms=store.now_ms, ttl_ms=TTL_MS)


def pay(store: Store, rid: str, cost_pico: int) -> Settled:
    return admission.settle(
        store.state, rid, actual_tokens=1, ran=True, now_ms=store.now_ms,
        actual_cost_pico=cost_pico,
    )  # fmt: skip


def money(store: Store) -> tuple[int, int]:
    of_tenant = store.state.months[MONTH].of("tenant")
    return of_tenant.spent_pico, of_tenant.reserved_pico


def test_no_budget_is_never_a_budget_error() -> None:
    """B01: whatever a request costs, and whether or not the month is known."""
    assert granted(ask(a_store(None, known=False), "a", 10**30)).uses[0].spent_pico is None


def test_reserved_and_spent_together_stay_within_the_budget() -> None:
    """Two of 50 fit exactly; what they did not cost is there for the next."""
    store = a_store(100)
    granted(ask(store, "a", 50))
    granted(ask(store, "b", 50))
    no = refused(ask(store, "c", 1))
    assert (no.kind, no.limit, no.used, no.need, no.retry_after_ms) == (
        Kind.BUDGET, 100, 100, 1, None,
    )  # fmt: skip
    pay(store, "a", 20)
    assert money(store) == (20, 50)
    use = granted(ask(store, "d", 30)).uses[0]
    assert (use.spent_pico, use.reserved_pico) == (20, 80)


def test_a_month_that_is_not_known_admits_nothing() -> None:
    """A budget in force needs what was spent before, and what was spent before counts."""
    store = a_store(100, known=False)
    assert ask(store, "a", 1) == MoneyUnknown(MONTH)
    know(store, {"tenant": 90})
    assert refused(ask(store, "b", 11)).used == 90
    granted(ask(store, "c", 10))


def test_a_lapsed_lease_frees_its_money_and_is_paid_once() -> None:
    """R28: the late settlement adds what it cost, its repetition nothing."""
    store = a_store(100)
    ask(store, "a", 60)
    store.now_ms += TTL_MS
    granted(ask(store, "b", 100))
    assert money(store) == (0, 100)
    assert pay(store, "a", 60) is Settled.LAPSED
    assert pay(store, "a", 60) is Settled.REPEATED
    assert money(store) == (60, 100)


def test_every_request_is_in_the_sum_or_in_the_store_and_never_in_both() -> None:
    """One settled before the month was begun, one held then, one acquired later: only the first is
    for the sum."""
    store = a_store(None, known=False)
    for rid in ("before", "held"):
        ask(store, rid, 10)
    pay(store, "before", 7)
    begun = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    assert begun is not None
    ask(store, "later", 10)
    pay(store, "held", 8)
    mine = begun.held | admission.unsettled_or_recent(store.state, now_ms=store.now_ms)
    assert mine == {"held", "later"}
    admission.finish_month(store.state, MONTH, begun.at_ms, {"tenant": 7}, now_ms=store.now_ms)
    assert money(store) == (15, 10)


def test_a_month_is_begun_again_after_a_while_and_from_nothing() -> None:
    """Whoever summed it up may have died; the sum of the first comes too late."""
    store = a_store(None, known=False)
    first = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    assert admission.begin_month(store.state, MONTH, now_ms=store.now_ms + 2_999) is None
    store.now_ms += 3_000
    again = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    assert first is not None
    assert again is not None
    late = admission.finish_month(store.state, MONTH, first.at_ms, {}, now_ms=store.now_ms)
    assert not late


def test_months_before_the_last_are_forgotten() -> None:
    """At the turn of a year too."""
    store = a_store(None, known=False)
    for month in ("2026-11", "2026-12", "2027-01"):
        admission.begin_month(store.state, month, now_ms=store.now_ms)
    assert set(store.state.months) == {"2026-12", "2027-01"}


UTC, TOKYO, YEN = "2027-01:3:5:USD", "2027-01:2:4:USD", "2027-01:3:5:JPY"


@pytest.mark.parametrize(("begun", "reserved_pico"), [(TOKYO, 10), (YEN, 0)])
def test_a_month_of_another_zone_or_currency_takes_the_place_of_the_other(
    begun: str, reserved_pico: int
) -> None:
    """The old one is forgotten: it will not have what is spent from now on, should it come back.
    What runs, or has lapsed, counts in the new one if it is of the same currency."""
    store = a_store(None, known=False)
    admission.begin_month(store.state, UTC, now_ms=store.now_ms)
    for rid, cost_pico in (("lapsed", 20), ("runs", 10)):
        demand = Demand(rid, 1, 1, 1, cost_pico, UTC)
        admission.acquire(store.state, demand, store.offered, now_ms=store.now_ms, ttl_ms=TTL_MS)
        store.now_ms += TTL_MS - 1
    assert admission.begin_month(store.state, begun, now_ms=store.now_ms) is not None
    assert set(store.state.months) == {begun}
    of_tenant = store.state.months[begun].of("tenant")
    assert of_tenant.reserved_pico == reserved_pico
    pay(store, "runs", 7)
    pay(store, "lapsed", 5)
    of_tenant = store.state.months[begun].of("tenant")
    assert (of_tenant.spent_pico, of_tenant.reserved_pico) == (12 if reserved_pico else 0, 0)


def test_who_began_a_month_may_begin_it_again_at_once() -> None:
    """Where it did not hear the store's reply; what it heard before counts no more."""
    store = a_store(None, known=False)
    first = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    store.now_ms += 1
    assert admission.begin_month(store.state, MONTH, now_ms=store.now_ms) is None
    again = admission.begin_month(store.state, MONTH, now_ms=store.now_ms, again=True)
    assert first is not None
    assert again is not None
    assert again.at_ms > first.at_ms

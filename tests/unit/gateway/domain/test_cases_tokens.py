"""Reports of token limits and budgets that let too much through, or too little."""

import hypothesis.strategies as st
from admission_store import Store, granted, refused, scopes
from hypothesis import given
from memory_ports import TTL_MS

from gateway.domain import admission
from gateway.domain.admission import Demand, Granted, Kind, MoneyUnknown, Paused, Refused
from gateway.domain.tenant import Limits, ModelLimits

MONTH, MONTH_BEFORE = "2026-11", "2026-10"
CENT = 10**10
"""Of a dollar, in pico."""

Decision = Granted | Refused | Paused | MoneyUnknown


def with_budget(budget: str | None, *, spent_pico: int = 0) -> Store:
    """A tenant's store that knows what the month has cost so far."""
    store = Store(Limits(monthly_budget=budget))
    know(store, MONTH, spent_pico)
    return store


def know(store: Store, month: str, spent_pico: int) -> None:
    begun = admission.begin_month(store.state, month, now_ms=store.now_ms)
    assert begun is not None
    spent = {scope.scope: spent_pico for scope in store.offered}
    assert admission.finish_month(store.state, month, begun.at_ms, spent, now_ms=store.now_ms)


def pay(store: Store, rid: str, most_pico: int, month: str = MONTH) -> Decision:
    demand = Demand(rid, 1, 1, 1, most_pico, month)
    return admission.acquire(store.state, demand, store.offered, now_ms=store.now_ms, ttl_ms=TTL_MS)


def settle(store: Store, rid: str, actual_pico: int) -> None:
    admission.settle(
        store.state,
        rid,
        actual_tokens=1,
        ran=True,
        now_ms=store.now_ms,
        actual_cost_pico=actual_pico,
    )


@given(st.lists(st.integers(58, 175), min_size=5, max_size=5))
def test_l01_what_is_admitted_at_once_is_within_the_limit(needs: list[int]) -> None:
    """L01: five at once of 58 to 175 tokens each on 100 a minute."""
    store = Store(Limits(tpm=100))
    admitted = [
        need
        for number, need in enumerate(needs)
        if isinstance(store.acquire(str(number), need), Granted)
    ]
    assert sum(admitted) == store.tokens <= 100


def test_l02_nothing_used_and_no_maximum_admits_one() -> None:
    """L02: 100 a minute; 400 are expected of an answer without a maximum: 100 are reserved, and the
    next one waits for what this one leaves."""
    store = Store(Limits(tpm=100))
    assert granted(store.acquire("a", 400, floor=6)).reserved_tokens == 100
    assert refused(store.acquire("b", 400, floor=6)).retry_after_ms == 61_000
    store.settle("a", 30)
    assert isinstance(store.acquire("c", 70), Granted)


def test_l03_what_runs_counts_before_it_has_ended() -> None:
    """L03: 213 % of 1,000 a minute, 30 each, none of them settled: 33 run, not 71."""
    store = Store(Limits(tpm=1000))
    decisions = [store.acquire(str(number), 30) for number in range(71)]
    assert sum(isinstance(decision, Granted) for decision in decisions) == 33
    assert store.tokens == 990


def test_r23_a_minute_that_is_used_up_does_not_refill_by_and_by() -> None:
    """R23: 1,000 at 0 s: nothing at 30 s and 60 s, all of it at 61 s. The window trails; it is no
    bucket that drips."""
    store = Store(Limits(tpm=1000))
    began_ms = store.now_ms
    store.acquire("a", 1000)
    store.settle("a", 1000)
    for at_ms in (1, 30_000, 60_999):
        store.now_ms = began_ms + at_ms
        assert refused(store.acquire("b", 1)).retry_after_ms == 61_000 - at_ms
    store.now_ms = began_ms + 61_000
    assert isinstance(store.acquire("c", 1000), Granted)


def test_l21_many_at_once_do_not_pass_a_budget() -> None:
    """L21, R26: $1.00, twenty at once that may cost $0.20: five. When they came to $0.05 each,
    there is room for three more, no matter who looked before."""
    store = with_budget("1.00")
    decisions = [pay(store, f"{number:02}", 20 * CENT) for number in range(20)]
    assert sum(isinstance(decision, Granted) for decision in decisions) == 5
    no = refused(decisions[5])
    assert (no.kind, no.limit, no.used, no.need) == (
        Kind.BUDGET,
        100 * CENT,
        100 * CENT,
        20 * CENT,
    )
    for number in range(5):
        settle(store, f"{number:02}", 5 * CENT)
    again = [pay(store, f"again-{number}", 20 * CENT) for number in range(5)]
    assert sum(isinstance(decision, Granted) for decision in again) == 3


def test_r27_the_last_request_is_not_free() -> None:
    """R27: $0.01 are left, $0.05 may be needed: refused, and nothing of any limit is consumed."""
    store = with_budget("1.00", spent_pico=99 * CENT)
    no = refused(pay(store, "a", 5 * CENT))
    assert (no.kind, no.retry_after_ms) == (Kind.BUDGET, None)
    assert (store.tokens, store.requests, store.state.leases) == (0, 0, {})
    assert isinstance(pay(store, "b", CENT), Granted)
    assert isinstance(pay(store, "c", 1), Refused)


def test_r28_money_of_what_nobody_settles_comes_back_and_is_charged_late_once() -> None:
    """R28: the reservation is free once the lease has lapsed; a settlement after that still costs
    what it cost, once."""
    store = with_budget("0.10")
    pay(store, "lost", 10 * CENT)
    assert isinstance(pay(store, "b", CENT), Refused)
    store.now_ms += TTL_MS
    assert isinstance(pay(store, "c", 4 * CENT), Granted)
    for _ in range(2):
        settle(store, "lost", 6 * CENT)
    assert isinstance(pay(store, "d", 1), Refused)
    settle(store, "c", 3 * CENT)
    assert isinstance(pay(store, "e", CENT), Granted)


def test_b01_without_a_budget_money_refuses_nothing() -> None:
    """B01: whatever a request may cost, and whether or not the store knows the month."""
    assert isinstance(pay(Store(), "a", 10**30), Granted)
    assert isinstance(pay(with_budget(None, spent_pico=10**30), "a", 10**30), Granted)
    unknown = Store(Limits(monthly_budget="1.00"))
    assert pay(unknown, "a", 0) == MoneyUnknown(MONTH)


def test_b02_a_new_budget_does_not_see_the_months_before() -> None:
    """B02: $50 were spent, all of it last month: $10 a month leave $10. What this month has cost
    counts from its first day on, whenever the budget was set."""
    store = Store(Limits(monthly_budget="10.00"))
    know(store, MONTH_BEFORE, 5_000 * CENT)
    know(store, MONTH, 0)
    assert isinstance(pay(store, "a", 1_000 * CENT), Granted)
    late = with_budget("10.00", spent_pico=900 * CENT)
    assert isinstance(pay(late, "a", 101 * CENT), Refused)
    assert isinstance(pay(late, "b", 100 * CENT), Granted)


def test_b02_a_month_that_has_ended_does_not_hold_up_the_next() -> None:
    """B02: used up on the last day; on the first of the next month all of it is there."""
    store = with_budget("1.00", spent_pico=100 * CENT)
    assert isinstance(pay(store, "a", 1), Refused)
    store.now_ms += 31 * 86_400_000
    know(store, "2026-12", 0)
    assert isinstance(pay(store, "b", 100 * CENT, "2026-12"), Granted)


def test_b04_a_budget_that_is_taken_away_refuses_nothing() -> None:
    """B04: null is no limit, from the next decision on, though the month's money is known."""
    store = with_budget("1.00", spent_pico=100 * CENT)
    assert isinstance(pay(store, "a", CENT), Refused)
    store.offered = scopes(version=2)
    assert isinstance(pay(store, "b", CENT), Granted)


def test_money_that_was_reserved_too_much_is_not_lost() -> None:
    """What a request did not cost is there for the next one at once."""
    store = with_budget("1.00")
    pay(store, "a", 60 * CENT)
    assert isinstance(pay(store, "b", 41 * CENT), Refused)
    settle(store, "a", 1)
    assert isinstance(pay(store, "c", 100 * CENT - 1), Granted)


def test_r14_every_limit_of_a_scope_is_its_own() -> None:
    """R14: read back as they were set, per scope: none follows from another."""
    narrowed = ModelLimits(rpm=5, tpm=7, monthly_budget="0.25")
    store = Store(Limits(monthly_budget="7.50", models={"m": narrowed}))
    know(store, MONTH, 0)
    limits = [use.limits for use in granted(pay(store, "a", 1)).uses]
    assert [scope.budget_pico for scope in limits] == [750 * CENT, None, 25 * CENT, None]
    assert [scope.rpm for scope in limits] == [None, None, 5, None]
    assert [scope.tpm for scope in limits] == [None, None, 7, None]

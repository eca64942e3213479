"""The store of leases comes back, perhaps empty, or does not know enough to decide."""

from collections.abc import Callable
from typing import Any

import pytest
from memory_gateway import until
from memory_leases import Holder, counted, shorten_periods
from memory_ports import START_MS, TTL_MS
from tenant_examples import a_tenant

from gateway.domain.admission import Demand, Kind, MoneyUnknown, Paused, Refused, Settled
from gateway.domain.scopes import ScopeLimits
from gateway.errors import InvalidRequest, LimitReached, Overloaded, QuotaExceeded
from gateway.serving.leases import Leases
from gateway.serving.month_now import month_now
from gateway.serving.ports import HeldLease
from gateway.serving.refusals import refusal
from gateway.serving.store_watch import StoreState


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


async def test_held_leases_are_told_before_settlements_and_both_before_requests() -> None:
    """INV-2: what runs here must be counted before anybody is admitted again."""
    holder = Holder()
    ended, _ = await holder.ask("a", 100), await holder.ask("b", 100)
    await holder.lose()
    await holder.end(ended, 10)
    holder.clock.advance(TTL_MS + 1)
    told: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        by_ledger = getattr(holder.ledger, name)

        async def call(*given: Any, **named: Any) -> Any:
            if not holder.ledger.away:
                told.append(name if holder.leases.reachable else f"{name} while returning")
            return await by_ledger(*given, **named)

        return call

    for name in ("renew", "settle", "acquire"):
        setattr(holder.ledger, name, noting(name))
    await holder.healed()
    assert told[:2] == ["renew while returning", "settle while returning"]
    await holder.ask("c", 1)
    assert told[-1] == "acquire"


async def test_an_empty_store_is_told_at_once_and_the_request_waits() -> None:
    """DESIGN 10: 503 with the time that is left; a word; what runs is held again long before the
    next renewal, set and never added up."""
    holder = Holder()
    holder.leases._renew_s = 600.0
    await holder.ask("a", 100, sequences=2)
    holder.ledger.lose_everything()
    recreated = counted("weir_leases_recreated_total")
    async with holder.running():
        error = await holder.refused("b")
        assert error.retry_after_ms is not None
        assert TTL_MS <= error.retry_after_ms <= 61_000
        assert holder.leases.paused
        await until(lambda: holder.state.running("tenant") == 2)
    assert counted("weir_leases_recreated_total") == recreated + 1
    holder.clock.advance(error.retry_after_ms)
    assert not holder.leases.paused


async def test_what_was_lost_once_is_not_taken_over() -> None:
    """What the store charged again of it is not known here."""
    holder = Holder()
    lease = await holder.ask("a", 100)
    holder.ledger.lose_everything()
    await holder.leases._held.renew_all()
    await holder.lose()
    await holder.end(lease, 0)
    await holder.refused("b", tokens=1)


async def test_excess_is_counted_shown_and_over_by_itself() -> None:
    """INV-2: a lease that had lapsed is held again beside what others were granted meanwhile."""
    holder = Holder()
    seen = counted("weir_excess_sequences_seen_total")
    lease = await holder.ask("a", 10, sequences=2)
    holder.clock.advance(TTL_MS)
    other = Leases(holder.ledger, holder.clock, renew_ms=1)
    demand = Demand("x", 2, 10, 10)
    await other.acquire(holder.caller, "m", demand)
    await holder.leases._held.renew_all()
    assert holder.leases.excess == 2
    assert counted("weir_excess_sequences_seen_total") == seen + 2
    await holder.lose()
    await holder.end(lease, 0)
    await holder.refused("b", tokens=1)
    await holder.healed()
    await holder.leases._held.renew_all()
    assert holder.leases.excess == 0


async def test_a_month_is_rebuilt_and_the_request_asked_again() -> None:
    """The tenant notices only the time."""
    holder = Holder()
    holder.replies = [MoneyUnknown("2026-11")]
    assert (await holder.ask("a")).request_id == "a"
    assert holder.months.asked == [("acme", "2026-11")]


async def test_a_month_that_is_not_known_in_time_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second at most; nothing is held."""
    monkeypatch.setattr("gateway.serving.decisions._REBUILD_S", 0.01)
    holder = Holder(months_in_time=False)
    holder.replies = [MoneyUnknown("2026-11")]
    await holder.refused("a")
    assert (holder.leases.held, holder.leases.unsettled) == (0, 0)


async def test_each_decision_is_counted_by_its_result() -> None:
    """By the store, and what it was."""
    holder = Holder()
    scope = ScopeLimits("tenant", 1, 1, 1, 1)
    for reply, result, error in (
        (Paused(2, 1), "paused", Overloaded),
        (MoneyUnknown("2026-11"), "money_unknown", Overloaded),
        (Refused(Kind.TOKENS, scope, 1, 1, 1, 5), "tokens", LimitReached),
        (Refused(Kind.BUDGET, scope, 1, 1, 1, 5), "insufficient_quota", QuotaExceeded),
        (Refused(Kind.SEQUENCES, scope, 1, 1, 2, None), "sequences", InvalidRequest),
    ):
        holder.leases._decisions._months = None
        holder.replies = [reply]
        labels = {"result": result, "mode": "store"}
        before = counted("weir_admission_decisions_total", **labels)
        with pytest.raises(error):
            await holder.ask("a")
        assert counted("weir_admission_decisions_total", **labels) == before + 1
    await holder.lose()
    labels = {"result": "unavailable", "mode": "none"}
    before = counted("weir_admission_decisions_total", **labels)
    timed = counted("weir_admission_decision_seconds_count", mode="none")
    await holder.refused("b")
    assert counted("weir_admission_decisions_total", **labels) == before + 1
    assert counted("weir_admission_decision_seconds_count", mode="none") == timed + 1
    assert counted("weir_store_state") == StoreState.AWAY


def test_a_budget_is_told_in_the_tenants_money() -> None:
    """Scope, limit, use and need, to the last digit; and what is left."""
    scope = ScopeLimits("key:k/model:m", 1, None, None, None, 5 * 10**12)
    refused = Refused(Kind.BUDGET, scope, 5 * 10**12, 4_999_999_500_000, 10**9, None)
    error = refusal(refused, month_now(a_tenant(), START_MS))
    assert isinstance(error, QuotaExceeded)
    assert (error.status, error.type, error.code) == (
        429,
        "insufficient_quota",
        "insufficient_quota",
    )
    assert error.message == (
        "the monthly budget of the key k and model m is 5.00 USD: 4.9999995 USD spent or reserved, "
        "this request may cost 0.001 USD"
    )
    assert error.remaining_pico == 500_000


@pytest.mark.parametrize("broken", ["renew", "settle", "claim_sweep"])
async def test_a_crash_of_one_loop_ends_no_other(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in one pass is logged; the others go on, and so does that one."""
    holder = Holder()
    lease = await holder.ask("a")
    crashes = 0

    async def crash(*_: object, **__: object) -> None:
        nonlocal crashes
        crashes += 1
        raise ZeroDivisionError

    monkeypatch.setattr(holder.ledger, broken, crash)
    if broken == "settle":
        await holder.end(lease, 1)
    async with holder.running():
        await until(lambda: crashes >= 3)
        renewals, sweeps = len(holder.ledger.renewals), len(holder.ledger.claims)
        if broken not in ("renew", "settle"):
            await until(lambda: len(holder.ledger.renewals) > renewals)
        if broken != "claim_sweep":
            await until(lambda: len(holder.ledger.claims) > sweeps)
    assert "ZeroDivisionError" in caplog.text


async def test_a_bug_in_a_ping_is_no_answer_and_no_end(caplog: pytest.LogCaptureFixture) -> None:
    """Logged; the next one decides."""
    holder = Holder()

    async def crash() -> None:
        raise ZeroDivisionError

    holder.leases.watch._ping = crash
    assert await holder.leases.watch.lives()
    assert "ZeroDivisionError" in caplog.text
    holder.leases.watch._ping = holder.ledger.ping
    await holder.lose()


async def test_one_settlement_that_cannot_be_sent_holds_up_no_other() -> None:
    """Nor does one tenant's renewal."""
    holder = Holder()
    first, second = await holder.ask("a", 10), await holder.ask("b", 10)
    by_ledger = holder.ledger.settle

    async def settle(lease: HeldLease, **actual: Any) -> Settled:
        if lease.request_id == "a":
            raise ZeroDivisionError
        return await by_ledger(lease, **actual)

    holder.ledger.settle = settle  # type: ignore[method-assign]
    await holder.lose()
    await holder.end(first, 1)
    await holder.end(second, 1)
    holder.ledger.away = False
    async with holder.running():
        await until(lambda: holder.leases.reachable and holder.leases.unsettled == 1)
    assert list(holder.state.leases) == ["a"]

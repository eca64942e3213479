"""The store of leases is away: what a gateway may still admit, and what it may not."""

import pytest
from memory_leases import Holder, counted, shorten_periods
from memory_ports import TTL_MS
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand, Settled
from gateway.domain.tenant import Limits
from gateway.errors import Overloaded
from gateway.serving.authenticate import Caller


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


async def test_a_request_runs_in_an_ended_ones_place() -> None:
    """DESIGN 10: what the gateway held it may use again; what both used is settled once, in the
    present second; and then everything is as if the store had never been away."""
    holder = Holder()
    before = counted("weir_admission_decisions_total", result="granted", mode="held_share")
    first = await holder.ask("a", 100)
    await holder.lose()
    await holder.end(first, 30, cost=7)
    assert (holder.leases.unsettled, holder.leases.withheld) == (1, 1)
    holder.clock.advance(4_000)
    second = await holder.ask("b", 70)
    assert (second.request_id, second.carried, second.base_tokens) == ("a", True, 30)
    assert second.base_cost_pico == 7
    assert (holder.leases.held, holder.leases.unsettled) == (1, 0)
    await holder.refused("c")
    await holder.end(second, 50, cost=2)
    assert holder.ledger.settlements == []
    await holder.healed()
    assert holder.ledger.settlements == [("a", 50, True, Settled.LIVE)]
    assert holder.tokens == 80
    now_s = holder.clock.now_ms() // 1000
    assert {s: c.tokens for s, c in holder.state.scopes["tenant"].window.cells.items()} == {
        now_s: 80
    }
    assert holder.state.leases == {}
    after = counted("weir_admission_decisions_total", result="granted", mode="held_share")
    assert after == before + 1


async def test_a_place_may_be_taken_more_than_once() -> None:
    """Until its tokens are used up."""
    holder = Holder()
    lease = await holder.ask("a", 100)
    await holder.lose()
    for rid in ("b", "c"):
        await holder.end(lease, 30)
        lease = await holder.ask(rid, 40)
    assert lease.base_tokens == 60
    await holder.end(lease, 30)
    await holder.refused("d", tokens=11)
    assert (await holder.ask("d", 10)).base_tokens == 90


async def test_a_request_that_never_ran_leaves_its_request_too() -> None:
    """RPM: the one unit of the lease is used by who ran, whoever came last."""
    holder = Holder(Limits(rpm=1))
    lease = await holder.ask("a")
    await holder.lose()
    await holder.end(lease, 0, ran=False)
    lease = await holder.ask("b")
    await holder.end(lease, 0)
    await holder.refused("c", tokens=1)
    await holder.healed()
    assert holder.state.scopes["tenant"].window.requests == 1


async def test_an_earlier_request_that_ran_is_not_forgotten() -> None:
    """Though the later one never did."""
    holder = Holder(Limits(max_sequences=1))
    lease = await holder.ask("a")
    await holder.lose()
    await holder.end(lease, 0)
    await holder.end(await holder.ask("b"), 0, ran=False)
    await holder.healed()
    assert holder.state.scopes["tenant"].window.requests == 1


async def test_what_was_sent_is_never_used_again() -> None:
    """Its settlement may have arrived: another may run in its place by now."""
    holder = Holder()
    lease = await holder.ask("a", 100)
    holder.ledger.loses_replies = True
    await holder.end(lease, 0)
    assert (holder.leases.unsettled, holder.leases.withheld) == (1, 0)
    await holder.lose()
    await holder.refused("b", tokens=1)


async def test_nothing_that_still_runs_is_used_twice() -> None:
    """Only what has ended makes room."""
    holder = Holder()
    await holder.ask("a", 100)
    await holder.lose()
    await holder.refused("b", tokens=1)


async def test_after_one_lease_time_nothing_is_admitted() -> None:
    """And the settlement still counts when the store is back."""
    holder = Holder()
    lease = await holder.ask("a", 100)
    await holder.lose()
    await holder.end(lease, 30)
    holder.clock.advance(TTL_MS)
    await holder.refused("b", tokens=1)
    await holder.healed()
    assert holder.tokens == 30


async def test_a_budget_is_503_at_once() -> None:
    """DESIGN 10: whatever is left."""
    holder = Holder(Limits(monthly_budget="5.00"))
    holder.caller = Caller(a_tenant(), a_key())
    lease = await holder.ask("a", 100)
    await holder.lose()
    await holder.end(lease, 0, ran=False)
    holder.caller = Caller(a_tenant(Limits(monthly_budget="5.00")), a_key())
    await holder.refused("b", tokens=1)


async def test_without_a_maximum_nothing_is_taken_over() -> None:
    """What bounds nothing could use more than is left."""
    holder = Holder()
    lease = await holder.ask("a", 100)
    await holder.lose()
    await holder.end(lease, 0)
    await holder.refused("b", tokens=1, bounded=False)
    assert await holder.ask("c", 1)


async def test_a_look_passes_where_a_share_may_do() -> None:
    """A long prompt is refused early where there is none."""
    holder = Holder()

    async def has_room(tokens: int) -> bool:
        demand = Demand("b" * 32, 1, tokens, tokens)
        return await holder.leases.has_room(holder.caller, "m", demand)

    lease = await holder.ask("a", 100)
    await holder.lose()
    with pytest.raises(Overloaded):
        await has_room(1)
    await holder.end(lease, 40)
    assert await has_room(60)
    with pytest.raises(Overloaded):
        await has_room(61)

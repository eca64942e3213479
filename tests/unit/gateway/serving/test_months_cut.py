"""A rebuild that one late reply of the store cuts short."""

import asyncio
from typing import Any

import pytest
from month_world import World, settle_down

from gateway.serving import months as months_module
from gateway.serving.ports import LedgerUnavailable


async def through(world: World, asking: "asyncio.Task[bool]") -> bool:
    """Let every step happen; gateways ship meanwhile."""
    for _ in range(60):
        await settle_down()
        if asking.done():
            return await asking
        for gateway in (0, 1):
            world.ship(gateway, 100)
            world.publish(gateway)
        if world.turnstile.waiting:
            await world.turnstile.release(0)
    raise AssertionError("the rebuild did not end")


@pytest.mark.parametrize("late", ["begin_month", "unsettled_or_recent", "finish_month"])
async def test_the_next_request_begins_again_at_once(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store did it, the reply came too late: nobody waits until others might begin again."""
    monkeypatch.setattr(months_module, "POLL_S", 0)
    monkeypatch.setattr(months_module, "ANOTHERS_S", 0)
    world = World()
    world.admit(0, "a", "m", 5)
    world.record(world.requests[-1], 100)
    world.settle(world.requests[-1])
    months = world.months()
    ledger: Any = months._ledger
    real = getattr(ledger, late)

    async def unheard(*given: Any, **named: Any) -> None:
        if late != "finish_month":
            await real(*given, **named)
        raise LedgerUnavailable(TimeoutError)

    with monkeypatch.context() as patch:
        patch.setattr(ledger, late, unheard)
        asking = asyncio.create_task(months.rebuild("acme", world.month))
        assert not await through(world, asking)
    assert not world.is_known
    assert await through(world, asyncio.create_task(months.rebuild("acme", world.month)))
    assert world.is_known
    assert world.spent()["tenant"] == 5
    # Only its own beginning is no other's: the next time 3 s count again.
    asking = asyncio.create_task(months.rebuild("acme", world.month))
    at_ms = world.state.months[world.month].at_ms
    world.clock.advance(1)
    await through(world, asking)
    assert world.state.months[world.month].at_ms == at_ms

"""The spend in the store equals what the requests cost, whatever happens while it is rebuilt: two
gateways at once, one that dies between any two steps, records shipped late, requests that end
meanwhile, a store that is lost."""

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from month_world import Request, World, settle_down

from gateway.domain.spend import spent_by_scope
from gateway.serving import months as months_module
from gateway.serving.months import Rebuilt

EVENTS = (
    "admit", "admit", "admit", "record", "record", "owe", "settle", "settle", "settle unheard",
    "ship", "publish", "renew", "time", "long time", "loss", "rebuild", "rebuild", "step", "step",
    "step", "step", "go on", "go on", "go on", "death", "whole request", "whole request",
)  # fmt: skip
MOMENTS = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 2**16)), min_size=10, max_size=100
)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling takes no time: the turnstile says when it goes on."""
    monkeypatch.setattr(months_module, "POLL_S", 0)
    monkeypatch.setattr(months_module, "REGISTERED_POLL_S", 0)
    monkeypatch.setattr(months_module, "ANOTHERS_S", 0)


class Play:
    """A world, and the rebuilds that are under way in it."""

    def __init__(self) -> None:
        self.world = World()
        self.rebuilds: list[asyncio.Task[Rebuilt]] = []

    def pick(self, number: int, **how_far: bool) -> Request | None:
        found = [
            request
            for request in self.world.requests
            if all(getattr(request, name) is value for name, value in how_far.items())
        ]
        return found[number % len(found)] if found else None

    async def happen(self, event: str, number: int) -> None:
        """Something happens; `number` says to what, and how far."""
        await self._to_a_rebuild(event, number)
        self._to_the_world(event, number)
        self._to_a_request(event, number)
        await settle_down()
        self.rebuilds = [each for each in self.rebuilds if not each.done()]

    def _to_the_world(self, event: str, number: int) -> None:
        world, gateway = self.world, number % 2
        match event:
            case "admit":
                world.admit(gateway, "ab"[number // 2 % 2], "mn"[number // 4 % 2], number)
            case "whole request":
                world.admit(gateway, "a", "m", number)
                world.record(world.requests[-1], 100)
                world.ship(gateway, len(world.requests))
                if number % 3:
                    world.settle(world.requests[-1])
            case "ship":
                world.ship(gateway, number % 5)
            case "publish":
                world.publish(gateway)
            case "renew":
                world.renew(gateway)
            case "time":
                world.pass_time(number % 4_000)
            case "long time":
                world.pass_time(number)
            case "loss":
                world.lose_the_store()

    def _to_a_request(self, event: str, number: int) -> None:
        if event == "record" and (request := self.pick(number, recorded=False)):
            self.world.record(request, number % 101)
        ended = self.pick(number, recorded=True, acknowledged=False)
        if ended is None:
            return
        match event:
            case "owe":
                self.world.owe(ended)
            case "settle":
                self.world.settle(ended)
            case "settle unheard":
                self.world.settle(ended, heard=False)

    async def _to_a_rebuild(self, event: str, number: int) -> None:
        world = self.world
        match event:
            case "rebuild" if len(self.rebuilds) < 3:
                attempt = world.months().attempt("acme", world.month)
                self.rebuilds.append(asyncio.create_task(attempt))
            case "step" if world.turnstile.waiting:
                await world.turnstile.release(number)
            case "go on":
                for _ in range(number % 12):
                    world.publish(number % 2)
                    world.publish(1 - number % 2)
                    if world.turnstile.waiting:
                        await world.turnstile.release(0)
            case "death" if self.rebuilds:
                self.rebuilds.pop(number % len(self.rebuilds)).cancel()

    async def end(self) -> None:
        """Everything ends, is settled and shipped, and the month is known."""
        world = self.world
        for request in world.requests:
            if not request.recorded:
                world.record(request, 50)
        for request in world.requests:
            if not request.acknowledged:
                world.settle(request)
        for _ in range(20):
            if world.is_known and not self.rebuilds:
                return
            world.pass_time(3_000)
            if not self.rebuilds:
                await self.happen("rebuild", 0)
            for gateway in (0, 1):
                world.ship(gateway, 10_000)
                world.publish(gateway)
            for _ in range(12):
                await self.happen("step", 0)
                for gateway in (0, 1):
                    world.publish(gateway)
        raise AssertionError("the month never became known")


def check(world: World) -> None:
    """While the month is known: every request's cost is in it once the store has taken its
    settlement, and the reserved money is that of the leases that are held."""
    if not world.is_known:
        return
    assert world.spent() == world.taken()
    reserved = {
        name: money.reserved_pico
        for name, money in world.state.months[world.month].money.items()
        if money.reserved_pico
    }
    held: Counter[str] = Counter()
    for request in world.requests:
        if request.lease.request_id in world.state.leases:
            held.update(dict.fromkeys(request.lease.scope_names, request.lease.cost_pico))
    assert reserved == {name: pico for name, pico in held.items() if pico}


async def play(moments: list[tuple[str, int]]) -> None:
    one = Play()
    for event, number in moments:
        await one.happen(event, number)
        check(one.world)
    await one.end()
    check(one.world)
    world = one.world
    assert world.spent() == spent_by_scope((r.cost for r in world.requests), ())
    for rebuild in one.rebuilds:
        rebuild.cancel()


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(MOMENTS)
def test_spend_is_what_the_requests_cost(moments: list[tuple[str, int]]) -> None:
    """Never double, never missing: while the month is known, and when all is over."""
    asyncio.run(play(moments))

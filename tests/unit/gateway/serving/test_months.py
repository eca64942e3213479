"""The rebuild of a month, step by step: whatever happens between any two of its steps, the store
then has what all requests cost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from memory_ports import TTL_MS
from month_world import Request, World, settle_down

from gateway.domain.spend import spent_by_scope
from gateway.serving import months as months_module
from gateway.serving.month_ports import SpendUnavailable
from gateway.serving.months import Rebuilt
from gateway.serving.ports import LedgerUnavailable

STEPS = 13
"""At least as many questions as a rebuild asks where both gateways ship at once."""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling takes no time: the turnstile says when it goes on."""
    monkeypatch.setattr(months_module, "POLL_S", 0)
    monkeypatch.setattr(months_module, "REGISTERED_POLL_S", 0)
    monkeypatch.setattr(months_module, "ANOTHERS_S", 0)


def a_busy_month() -> World:
    """Requests of either gateway that are running, recorded, shipped, settled, or any mix."""
    world = World()
    for number, (recorded, shipped, settled) in enumerate(
        [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)] * 2
    ):
        world.admit(number % 2, "a", "m", 10**number)
        request = world.requests[-1]
        if recorded:
            world.record(request, 100)
        if shipped:
            world.ship(number % 2, 100)
        if settled:
            world.settle(request)
    return world


async def step(world: World, *, times: int = 1) -> None:
    """Let a rebuild ask its next questions."""
    for _ in range(times):
        await settle_down()
        if world.turnstile.waiting:
            await world.turnstile.release(0)


async def advance(world: World, *, times: int) -> None:
    """Let a rebuild ask its next questions, while both gateways ship and publish."""
    await settle_down()
    for _ in range(times):
        for gateway in (0, 1):
            world.ship(gateway, 100)
            world.publish(gateway)
        await step(world)


async def finished(world: World, *rebuilds: "asyncio.Task[Rebuilt]") -> list[Rebuilt]:
    """Both gateways ship, publish, and settle again what they heard nothing of, until the rebuilds
    have ended."""
    for turn in range(200):
        if all(rebuild.done() for rebuild in rebuilds):
            return [rebuild.result() for rebuild in rebuilds]
        for request in world.requests:
            if request.owed and turn > 20:
                world.settle(request)
        for gateway in (0, 1):
            world.ship(gateway, 100)
            world.publish(gateway)
        await step(world)
    raise AssertionError("it does not end")


def rebuild(world: World) -> "asyncio.Task[Rebuilt]":
    return asyncio.create_task(world.months().attempt("acme", world.month))


def agrees(world: World) -> None:
    """All requests end and are settled, and the store has what they cost."""
    for request in world.requests:
        if not request.recorded:
            world.record(request, 100)
        if not request.acknowledged:
            world.settle(request)
    assert world.is_known
    assert world.spent() == spent_by_scope((request.cost for request in world.requests), ())


def open_request(world: World, **how_far: bool) -> Request:
    return next(
        request
        for request in world.requests
        if all(getattr(request, name) is value for name, value in how_far.items())
    )


def a_whole_request(world: World) -> None:
    world.admit(0, "b", "m", 3)
    world.record(world.requests[-1], 100)
    world.settle(world.requests[-1])
    world.ship(0, 100)


def one_recorded_and_shipped(world: World) -> None:
    world.admit(1, "b", "m", 3)
    world.record(world.requests[-1], 100)
    world.ship(1, 100)


def one_that_ran_ends(world: World) -> None:
    request = open_request(world, recorded=False)
    world.record(request, 100)
    world.settle(request)
    world.ship(request.gateway, 100)


def one_recorded_is_settled(world: World) -> None:
    world.settle(open_request(world, recorded=True, acknowledged=False))


def one_settlement_is_unheard(world: World) -> None:
    world.settle(open_request(world, recorded=True, acknowledged=False), heard=False)


def one_lapses(world: World) -> None:
    world.pass_time(TTL_MS + 1)
    world.renew(1)


EVENTS: tuple[Callable[[World], None], ...] = (
    a_whole_request,
    one_recorded_and_shipped,
    one_that_ran_ends,
    one_recorded_is_settled,
    one_settlement_is_unheard,
    one_lapses,
)


@pytest.mark.parametrize("at_step", range(STEPS))
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
async def test_something_happens_between_two_steps(
    event: Callable[[World], None], at_step: int
) -> None:
    """The event, after so many steps: counted once."""
    world = a_busy_month()
    running = rebuild(world)
    await advance(world, times=at_step)
    event(world)
    assert await finished(world, running) == [Rebuilt.DONE]
    agrees(world)


@pytest.mark.parametrize("at_step", range(STEPS))
async def test_it_dies_between_two_steps(at_step: int) -> None:
    """Whoever comes next begins again, at the earliest 3 s later, and nothing counts twice."""
    world = a_busy_month()
    dying = rebuild(world)
    await advance(world, times=at_step)
    dying.cancel()
    await settle_down()
    if world.is_known:
        agrees(world)
        return
    if world.month in world.state.months and not world.is_known:
        assert await finished(world, rebuild(world)) == [Rebuilt.ANOTHER]
        assert not world.is_known
    world.pass_time(3_000)
    a_whole_request(world)
    assert await finished(world, rebuild(world)) == [Rebuilt.DONE]
    agrees(world)


@pytest.mark.parametrize("at_step", range(STEPS))
async def test_it_is_begun_again_meanwhile(at_step: int) -> None:
    """What the first hands over belongs to a beginning that is no more, and is not taken."""
    world = a_busy_month()
    slow = rebuild(world)
    await advance(world, times=at_step)
    world.pass_time(3_000)
    fast = rebuild(world)
    results = await finished(world, slow, fast)
    assert Rebuilt.DONE in results
    assert set(results) <= {Rebuilt.DONE, Rebuilt.SUPERSEDED, Rebuilt.ANOTHER}
    agrees(world)


@pytest.mark.parametrize("at_step", range(STEPS))
async def test_the_store_is_lost_meanwhile(at_step: int) -> None:
    """It is begun anew once all that runs, or was settled unheard, has been told again."""
    world = a_busy_month()
    withheld = open_request(world, recorded=True, acknowledged=False)
    world.owe(withheld)
    lost = rebuild(world)
    await advance(world, times=at_step)
    world.lose_the_store()
    world.publish(0)
    early = rebuild(world)
    await settle_down()
    await step(world, times=20)
    assert not early.done() or early.result() is not Rebuilt.DONE
    assert not world.is_known
    world.pass_time(TTL_MS)
    world.settle(withheld)
    await finished(world, lost, early)
    world.pass_time(3_000)
    if not world.is_known:
        assert await finished(world, rebuild(world)) == [Rebuilt.DONE]
    agrees(world)


async def test_a_gateway_that_does_not_ship_holds_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The month stays unknown, and the rebuild gives up in time."""
    world = a_busy_month()
    running = rebuild(world)
    await settle_down()
    for _ in range(50):
        world.publish(0)
        await step(world)
    assert not running.done()
    assert not world.is_known
    monkeypatch.setattr(months_module, "UNSHIPPED_S", -1.0)
    other = World()
    given_up = rebuild(other)
    await settle_down()
    for _ in range(20):
        other.publish(0)
        await step(other)
    assert given_up.result() is Rebuilt.UNSHIPPED
    assert await finished(world, running) == [Rebuilt.DONE]
    agrees(world)


async def test_a_store_that_is_back_empty_hears_of_all_that_runs_first() -> None:
    """For one lease time nothing is summed, also by who had found it whole before."""
    world = a_busy_month()
    before = rebuild(world)
    await advance(world, times=1)
    world.lose_the_store()
    assert await finished(world, before) == [Rebuilt.EARLY]
    early = rebuild(world)
    await advance(world, times=30)
    assert (early.done(), world.is_known) == (False, False)
    world.pass_time(TTL_MS)
    assert await finished(world, early) == [Rebuilt.DONE]
    agrees(world)


@pytest.mark.parametrize("at_step", range(STEPS))
async def test_a_withheld_settlement_comes_late(at_step: int) -> None:
    """Of a request that had ended before the store was lost: waited for, so not counted twice."""
    world = a_busy_month()
    withheld = open_request(world, recorded=True, acknowledged=False)
    world.owe(withheld)
    world.lose_the_store()
    world.pass_time(TTL_MS)
    running = rebuild(world)
    await advance(world, times=at_step)
    assert not world.is_known
    world.settle(withheld)
    assert await finished(world, running) == [Rebuilt.DONE]
    agrees(world)


async def test_one_flight_for_all_who_ask() -> None:
    """Twenty requests of one gateway cause one rebuild; one that gives up disturbs nobody."""
    world = a_busy_month()
    months = world.months()
    asking = [asyncio.create_task(months.rebuild("acme", world.month)) for _ in range(20)]
    await settle_down()
    assert len(world.turnstile.waiting) == 1
    asking.pop().cancel()
    for _ in range(40):
        for gateway in (0, 1):
            world.ship(gateway, 100)
            world.publish(gateway)
        await step(world)
    assert await asyncio.gather(*asking) == [True] * 19
    assert world.is_known


@pytest.mark.parametrize(
    "failure", [LedgerUnavailable(TimeoutError), SpendUnavailable(OSError), RuntimeError("a bug")]
)
async def test_a_failure_is_an_answer(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is away, Postgres that is, a bug of ours: the month is not known, nothing is
    raised, and the next one tries again."""
    world = a_busy_month()
    months = world.months()

    async def fail(*_: object) -> Rebuilt:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(months, "attempt", fail)
        assert not await months.rebuild("acme", world.month)
    assert not await world.months().rebuild("nobody", world.month)
    again: Awaitable[bool] = asyncio.create_task(months.rebuild("acme", world.month))
    await settle_down()
    assert len(world.turnstile.waiting) == 1
    await months.stop()
    assert await again is False


@pytest.mark.parametrize("known", [True, False])
async def test_a_month_is_counted_again(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something was recorded that a known month may lack: it is summed up again, once,
    without anybody waiting. A month that is not known needs nothing."""
    monkeypatch.setattr(months_module, "RECOUNT_LOOKS_S", (0.0, 0.0))
    monkeypatch.setattr(months_module, "RECOUNT_AGAIN_S", 0)
    world = a_busy_month()
    if known:
        assert await finished(world, rebuild(world)) == [Rebuilt.DONE]
        world.admit(0, "a", "m", 5)
        request = world.requests[-1]
        world.record(request, 100)
        world.ship(0, 100)
        world.state.leases.pop(request.lease.request_id)
        world.state.months[world.month].money.clear()
        world.settle(request)
        world.pass_time(3_000)
    months = world.months()
    months.recount("acme", world.month)
    months.recount("acme", world.month)
    for _ in range(40):
        await advance(world, times=1)
    assert not world.turnstile.waiting
    assert world.is_known is known
    if known:
        agrees(world)
    await months.stop()


async def test_another_gateways_turn() -> None:
    """A rebuild that takes long is not begun again by those who wait for it."""
    world = a_busy_month()
    slow = rebuild(world)
    await advance(world, times=3)
    world.pass_time(10_000)
    world.turn_is_anothers = True
    at_ms = world.state.months[world.month].at_ms
    assert await finished(world, rebuild(world), slow) == [Rebuilt.ANOTHER, Rebuilt.DONE]
    assert world.state.months[world.month].at_ms == at_ms
    agrees(world)

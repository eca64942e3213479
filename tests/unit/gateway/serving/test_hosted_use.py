"""Which hosted providers are in use, over all gateways, and since when."""

import engine_events as events
import pytest
from hosted_gateway import a_gateway
from live_world import MemoryBoard
from memory_ports import START_MS, StandingClock

from gateway.serving.hosted_use import HostedUse, Use
from gateway.serving.ports import LedgerUnavailable

NAME = "hosted:near"


class Gateways:
    """Two that tell each other through a board, with one clock."""

    def __init__(self) -> None:
        self.board = MemoryBoard()
        self.clock = StandingClock()
        self.one = HostedUse(self.board.uses_of("one"), self.clock)
        self.two = HostedUse(self.board.uses_of("two"), self.clock)

    async def all(self) -> dict[str, Use]:
        """As the first sees it, once both have told."""
        await self.one.tell()
        await self.two.tell()
        return await self.one.all()


async def test_it_is_added_up_and_began_with_the_first() -> None:
    """Of both gateways."""
    world = Gateways()
    world.two.began(NAME)
    world.clock.advance(3_000)
    world.one.began(NAME)
    world.one.began(NAME)
    assert await world.all() == {NAME: Use(3, START_MS)}


async def test_one_request_after_another_is_one_use() -> None:
    """A gap of less than ten seconds ends nothing; one of ten does."""
    world = Gateways()
    for _ in range(5):
        world.one.began(NAME)
        world.clock.advance(1_000)
        world.one.ended(NAME)
        world.clock.advance(8_000)
    assert await world.all() == {NAME: Use(0, START_MS)}
    world.clock.advance(2_000)
    assert await world.all() == {}
    world.one.began(NAME)
    assert await world.all() == {NAME: Use(1, world.clock.now_ms())}


async def test_a_gateway_that_is_gone_uses_nothing() -> None:
    """What it said last counts for five seconds."""
    world = Gateways()
    world.two.began(NAME)
    await world.two.tell()
    world.clock.advance(4_999)
    assert (await world.one.all())[NAME].running == 1
    world.clock.advance(1)
    assert await world.one.all() == {}


async def test_who_uses_nothing_says_so_once() -> None:
    """And then is quiet; with the store away nobody knows."""
    world = Gateways()
    await world.one.tell()
    assert world.board.uses == {}
    world.one.began(NAME)
    world.one.ended(NAME)
    await world.one.tell()
    world.clock.advance(10_000)
    await world.one.tell()
    assert world.board.uses["one"][1] == {}
    world.board.uses.clear()
    await world.one.tell()
    assert world.board.uses == {}
    world.board.away = True
    with pytest.raises(LedgerUnavailable):
        await world.one.all()


async def test_a_request_that_goes_there_is_told_of() -> None:
    """While its stream is open, and no longer."""
    board, seen = MemoryBoard(), list[dict[str, Use]]()
    gateway = a_gateway([lambda: seen.append(use.own()), *events.answer(["a"])])
    use = gateway.hosted.use = HostedUse(board.uses_of("one"), gateway.clock)
    await gateway.post()
    assert [each["hosted:acme-ai"].running for each in seen] == [1]
    assert use.own()["hosted:acme-ai"].running == 0

"""Looks at pools: how often the store is asked, and what is told where it does not answer."""

import asyncio

from memory_pool_queue import MemoryStore
from memory_ports import StandingClock

from gateway.serving.queue_looks import KEPT_MS, PoolLooks


class Looking:
    """Looks of one gateway at a store that counts them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = StandingClock()
        self.is_open = True
        queue = self.store.gateway("g")
        self.looks = PoolLooks(queue, self.clock, is_open=lambda: self.is_open)

    @property
    def asked(self) -> list[str]:
        """Pools, as the store was asked of them."""
        return [what for _, step, what in self.store.calls if step == "observe"]


async def test_however_many_ask_each_pool_is_looked_at_once() -> None:
    """At the same time, and for 250 ms afterwards; then again."""
    looking = Looking()
    views = await asyncio.gather(*(looking.looks.look_at(["m", "n", "m"]) for _ in range(20)))
    assert sorted(looking.asked) == ["m", "n"]
    assert all({*view} == {"m", "n"} for view in views)
    looking.clock.advance(KEPT_MS - 1)
    await looking.looks.look("m")
    assert len(looking.asked) == 2
    looking.clock.advance(1)
    await looking.looks.look("m")
    assert looking.asked[2:] == ["m"]


async def test_a_store_that_does_not_answer_is_not_asked_again_at_once() -> None:
    """Nor at all while it is known to be away."""
    looking = Looking()
    looking.store.loses_reply = lambda step: True
    assert await looking.looks.look_at(["m"]) == {"m": None}
    assert await looking.looks.look("m") is None
    assert len(looking.asked) == 1
    looking.clock.advance(KEPT_MS)
    looking.is_open = False
    assert await looking.looks.look("m") is None
    assert len(looking.asked) == 1


async def test_who_leaves_takes_no_other_look_along() -> None:
    """The look goes on, and is kept."""
    looking = Looking()
    looking.store.reply_ms = lambda step: 20
    leaves = asyncio.create_task(looking.looks.look("m"))
    await asyncio.sleep(0)
    stays = asyncio.create_task(looking.looks.look("m"))
    await asyncio.sleep(0)
    leaves.cancel()
    assert await stays is not None
    assert await looking.looks.look("m") is not None
    assert len(looking.asked) == 1

"""Turns that few have at once, fair between those who ask."""

import asyncio
import random
from collections import Counter

import pytest

from gateway.adapters.usage_turns import FairTurns, LineFull, NoTurn


class Work:
    """What takes turns: each ends when it is told to."""

    def __init__(self, turns: FairTurns, *, wait_s: float = 10.0) -> None:
        self.turns = turns
        self.wait_s = wait_s
        self.began: list[str] = []
        self.running: dict[str, asyncio.Event] = {}
        self.refused = 0

    def ask(self, name: str) -> asyncio.Task[None]:
        """One more of that name."""
        return asyncio.create_task(self._ask(name))

    async def end(self, name: str) -> None:
        """The one of that name that is at it ends, and whoever is next begins."""
        self.running[name].set()
        await settled()

    async def _ask(self, name: str) -> None:
        try:
            async with self.turns.turn(name, wait_s=self.wait_s):
                assert name not in self.running
                self.began.append(name)
                ended = self.running[name] = asyncio.Event()
                try:
                    await ended.wait()
                finally:
                    del self.running[name]
        except LineFull:
            self.refused += 1


async def settled() -> None:
    """Whoever can go on has."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_who_asks_most_waits_for_itself() -> None:
    """Forty of one at once: one is at it, four wait and the others are refused; another begins at
    once, and a third is next."""
    work = Work(FairTurns(at_once=2, waiting_max=4))
    asked = [work.ask("hot") for _ in range(40)]
    await settled()
    assert (work.began, work.refused) == (["hot"], 35)
    asked += [work.ask("cold"), work.ask("third"), work.ask("third")]
    await settled()
    assert work.began == ["hot", "cold"]
    await work.end("hot")
    await work.end("cold")
    assert work.began[2:] == ["third", "hot"]
    while work.running:
        await work.end(next(iter(work.running)))
    await asyncio.gather(*asked)
    assert Counter(work.began) == {"hot": 5, "cold": 1, "third": 2}


async def test_who_came_meanwhile_is_before_who_has_had_one() -> None:
    """With one at a time."""
    work = Work(FairTurns(at_once=1, waiting_max=4))
    asked = [work.ask(name) for name in ("hot", "hot", "hot")]
    await settled()
    asked.append(work.ask("cold"))
    await settled()
    for _ in range(4):
        await work.end(work.began[-1])
    assert work.began == ["hot", "cold", "hot", "hot"]
    await asyncio.gather(*asked)


async def test_who_waits_too_long() -> None:
    """Is told whether it waits for itself, and leaves no trace."""
    turns = FairTurns(at_once=1, waiting_max=4)
    async with turns.turn("hot", wait_s=1.0):
        for name, behind_itself in (("hot", True), ("cold", False)):
            with pytest.raises(NoTurn) as refused:
                async with turns.turn(name, wait_s=0.01):
                    pytest.fail("it has no turn")
            assert refused.value.behind_itself is behind_itself
    async with turns.turn("cold", wait_s=1.0):
        pass


@pytest.mark.parametrize("seed", range(30))
async def test_whoever_leaves_takes_no_turn_along(seed: int) -> None:
    """Clients that go at any moment, as their turn comes too: never more at once than may be, one
    of each, and after all of it every turn is free."""
    drawn = random.Random(seed)  # noqa: S311 - the seed decides everything
    work = Work(FairTurns(at_once=2, waiting_max=4))
    asked: list[asyncio.Task[None]] = []
    for _ in range(200):
        match drawn.randrange(4):
            case 0 | 1:
                asked.append(work.ask(drawn.choice("abcd")))
            case 2 if asked:
                drawn.choice(asked).cancel()
            case _ if work.running:
                work.running[drawn.choice(sorted(work.running))].set()
                drawn.choice(asked).cancel()
        for _ in range(drawn.choice((0, 1, 2, 20))):
            await asyncio.sleep(0)
        assert len(work.running) <= 2
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    async with asyncio.timeout(1):
        async with work.turns.turn("a", wait_s=1.0), work.turns.turn("b", wait_s=1.0):
            pass
    assert not work.turns._lines

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from memory_gateway import until

from gateway.serving import store_watch
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.store_watch import StoreAway, StoreState, StoreWatch

TIMEOUT_MS = 100


class Store:
    """Answers after `delay_s`, or never where that is None; fails at once with `error`."""

    def __init__(self) -> None:
        self.delay_s: float | None = 0.0
        self.error: type[Exception] | None = None
        self.pings = 0
        self.calls = 0
        self.returns: list[str] = []
        self.breaks = 0
        self.fails_to_be_told: type[Exception] | None = None
        self.watch = StoreWatch(
            self.ping, timeout_ms=TIMEOUT_MS, on_return=self.told, on_broken=self.broken
        )

    async def ping(self) -> None:
        self.pings += 1
        await self._answer()

    async def call(self) -> str:
        """As the ledger does it: within the time-out, or LedgerUnavailable."""
        self.calls += 1
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                await self._answer()
        except TimeoutError:
            raise LedgerUnavailable(TimeoutError) from None
        return "reply"

    async def told(self) -> None:
        self.returns.append(self.watch.state.name)
        await asyncio.sleep(0)
        if self.fails_to_be_told is not None:
            raise self.fails_to_be_told(TimeoutError)

    def broken(self) -> None:
        self.breaks += 1

    async def _answer(self) -> None:
        if self.error is not None:
            raise LedgerUnavailable(self.error)
        await asyncio.sleep(60 if self.delay_s is None else self.delay_s)

    @property
    def state(self) -> StoreState:
        return self.watch.state

    async def fails(self) -> float:
        """A call that fails, and how long that took."""
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable):
            await self.watch.ask(self.call)
        return time.monotonic() - began

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "PING_PERIOD_S", 0.005)
    monkeypatch.setattr(store_watch, "REGULAR_PING_S", 0.005)


async def test_a_store_that_answers_is_asked() -> None:
    """Nothing else is done."""
    store = Store()
    assert await store.watch.ask(store.call) == "reply"
    assert (store.state, store.pings) == (StoreState.OPEN, 0)


async def test_a_store_that_hangs_is_away_when_the_first_decision_fails() -> None:
    """M19, M20: pinged from half the time-out on, so that one time-out is all that anybody waits;
    what comes after waits for nothing and sends nothing."""
    store = Store()
    store.delay_s = None
    assert await store.fails() < 3 * TIMEOUT_MS / 1000
    assert not await store.watch.lives()
    assert store.state is StoreState.AWAY
    began = time.monotonic()
    for _ in range(100):
        with pytest.raises(LedgerUnavailable) as caught:
            await store.watch.ask(store.call)
        assert caught.value.reason is StoreAway
    assert time.monotonic() - began < TIMEOUT_MS / 1000
    assert store.calls == 1


async def test_a_store_that_refuses_is_away_at_once() -> None:
    """R11, C14: an error reply to a script, also to the ping's, is no decision."""
    store = Store()
    store.error = PermissionError
    assert await store.fails() < TIMEOUT_MS / 1000
    assert not await store.watch.lives()
    assert store.state is StoreState.AWAY
    assert store.breaks == 2


async def test_one_late_reply_is_only_a_doubt() -> None:
    """The ping that it causes is answered, and the next call is made as ever."""
    store = Store()
    late = asyncio.create_task(store.fails())
    store.delay_s = None
    await until(lambda: store.calls == 1)
    store.delay_s = 0.0
    await late
    assert await store.watch.lives()
    assert await store.watch.ask(store.call) == "reply"
    assert (store.state, store.breaks) == (StoreState.OPEN, 0)


async def test_a_slow_reply_clears_the_doubt_though_the_ping_is_slower() -> None:
    """Whatever is answered while a ping is out says that the store lives."""
    store = Store()
    store.delay_s = 0.07
    assert await store.watch.ask(store.call) == "reply"
    judging = store.watch._judging
    assert judging is not None
    await judging
    assert store.state is StoreState.OPEN


@pytest.mark.parametrize("held_up_s", [0.15, 0.4])
async def test_an_event_loop_that_was_held_up_is_not_the_stores_fault(held_up_s: float) -> None:
    """Every timer has run out when the loop turns again: the ping is repeated, and answered."""
    store = Store()
    store.delay_s = 0.01
    calls = [asyncio.create_task(store.watch.ask(store.call)) for _ in range(3)]
    judged = asyncio.create_task(store.watch.lives())
    await until(lambda: store.pings == 1)
    time.sleep(held_up_s)  # noqa: ASYNC251 - what is tested
    assert await judged
    await asyncio.wait(calls)
    assert store.state is not StoreState.AWAY
    assert await store.watch.lives()
    assert store.state is StoreState.OPEN


async def test_it_is_told_before_it_decides_again() -> None:
    """RETURNING lasts until everything it must know has been sent."""
    store = Store()
    async with store.watched():
        store.error = ConnectionError
        await until(lambda: store.state is StoreState.AWAY)
        assert not store.watch.is_open
        store.error = None
        await until(lambda: store.state is StoreState.OPEN)
    assert store.returns == ["RETURNING"]


@pytest.mark.parametrize("error", [LedgerUnavailable, RuntimeError])
async def test_what_cannot_be_told_is_tried_again(error: type[Exception]) -> None:
    """The store went away once more, or a bug of ours: not open before it worked."""
    store = Store()
    store.fails_to_be_told = error
    async with store.watched():
        store.error = ConnectionError
        await until(lambda: store.state is StoreState.AWAY)
        store.error = None
        await until(lambda: len(store.returns) >= 3)
        assert not store.watch.is_open
        store.fails_to_be_told = None
        await until(lambda: store.state is StoreState.OPEN)


async def test_an_idle_store_is_pinged() -> None:
    """Its loss is known before a request meets it."""
    store = Store()
    async with store.watched():
        await until(lambda: store.pings > 2)
        store.delay_s = None
        await until(lambda: store.state is StoreState.AWAY)
    assert store.calls == 0


async def test_a_ping_of_an_idle_store_that_comes_late_is_only_a_doubt() -> None:
    """Within the time-out is in time, also where nothing else is asked: a store that is far away,
    or stood still for a moment, is not lost by its regular ping alone. Judged where this process
    was not itself held up."""
    for _ in range(20):
        store = Store()
        store.delay_s = 0.07
        seen, gap_s, looked_at = {store.state}, 0.0, time.monotonic()
        async with store.watched():
            while store.pings < 8 and StoreState.AWAY not in seen:
                await asyncio.sleep(0.001)
                seen.add(store.state)
                gap_s, looked_at = max(gap_s, time.monotonic() - looked_at), time.monotonic()
        if gap_s < 0.02:
            break
    else:
        pytest.fail("this process was held up in every round")
    assert seen == {StoreState.OPEN, StoreState.SUSPECT}


async def test_a_busy_store_is_pinged_too() -> None:
    """Its pulse goes on, so that a loss of what it acknowledged is seen; it decides meanwhile."""
    store = Store()

    async def asks_on() -> None:
        while True:
            await store.watch.ask(store.call)
            await asyncio.sleep(0)

    async with store.watched():
        asking = asyncio.create_task(asks_on())
        await until(lambda: store.pings > 2)
        asking.cancel()
        assert store.state is StoreState.OPEN
    assert store.calls > 0


async def test_while_it_comes_back_a_request_waits_for_no_longer_than_a_decision() -> None:
    """Open in time: it is asked. Not in time: it decides otherwise."""
    store = Store()
    assert await store.watch.until_open()
    store.watch._move(StoreState.RETURNING)
    began = time.monotonic()
    assert not await store.watch.until_open()
    assert time.monotonic() - began < 3 * TIMEOUT_MS / 1000
    waiting = asyncio.create_task(store.watch.until_open())
    await asyncio.sleep(0)
    store.watch._move(StoreState.OPEN)
    assert await waiting


async def test_a_store_that_stood_still_for_a_moment_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that comes meanwhile notices only the time; later nobody waits."""
    store = Store()
    async with store.watched():
        store.error = ConnectionError
        await until(lambda: store.state is StoreState.AWAY)
        waiting = asyncio.create_task(store.watch.until_open())
        await asyncio.sleep(0.01)
        store.error = None
        assert await waiting
        store.error = ConnectionError
        await until(lambda: store.state is StoreState.AWAY)
        began = time.monotonic()
        assert not await store.watch.until_open()
        assert TIMEOUT_MS / 2000 < time.monotonic() - began < 3 * TIMEOUT_MS / 1000
        monkeypatch.setattr(store_watch, "MOMENT_S", 0.0)
        began = time.monotonic()
        assert not await store.watch.until_open()
        assert time.monotonic() - began < TIMEOUT_MS / 2000


async def test_a_settlement_waits_for_a_doubt_to_be_resolved() -> None:
    """One that is sent and not answered could not be used again."""
    store = Store()
    store.delay_s = None
    failing = asyncio.create_task(store.fails())
    await until(lambda: store.state is StoreState.SUSPECT)
    assert not await store.watch.until_judged()
    assert store.state is StoreState.AWAY
    await failing

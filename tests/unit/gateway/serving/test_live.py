import asyncio
from collections.abc import AsyncIterator

import pytest
from memory_gateway import until
from memory_ports import StandingClock
from scripted_engine import RecordingConnection, ScriptedStream
from tenant_examples import a_worker

from billing.domain.usage_record import Outcome
from gateway.errors import WorkerTimeout
from gateway.serving import live as live_module
from gateway.serving.live import LiveRequest, LiveRequests, Patience, Stop, StreamWatch


class Watched:
    """One live request under a watch that turns at once."""

    def __init__(self, **changes: int) -> None:
        self.clock = StandingClock()
        bounds = {
            "first_event_timeout_ms": 30_000,
            "stall_timeout_ms": 10_000,
            "stream_ms_max": 100_000,
            "slow_reader_ms_max": 20_000,
        }
        self.requests = LiveRequests(self.clock, **{**bounds, **changes})
        self.client = RecordingConnection()
        self.live = LiveRequest(self.client, self.clock.monotonic_us())
        self.requests.add(self.live)
        self.stream = a_stream()
        self.watch = StreamWatch(self.stream, self.clock.monotonic_us())
        self.live.attach(self.watch)

    async def after(self, ms: int) -> Stop | None:
        """Let time pass, and the watch turn a few times."""
        self.clock.advance(ms)
        await asyncio.sleep(0.01)
        return self.live.stopped

    def event(self) -> None:
        """The engine sent something."""
        self.watch.saw(self.clock.monotonic_us())


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    """With the usual bounds."""
    monkeypatch.setattr(live_module, "_TICK_S", 0.001)
    made = Watched()
    task = asyncio.create_task(made.requests.run())
    yield made
    task.cancel()
    await asyncio.wait([task])


def a_stream() -> ScriptedStream:
    return ScriptedStream(a_worker(), "/", "u", b"", [])


async def test_the_first_stop_wins_and_aborts_once() -> None:
    """Ownership passes once: what comes later changes neither outcome nor message."""
    watched = Watched()
    watched.client.leave()
    watched.live.stop(Stop(Outcome.TIMED_OUT, WorkerTimeout("x")))
    assert watched.live.stopped == Stop(Outcome.CLIENT_CANCELLED, None)
    assert watched.stream.aborts == 1


async def test_what_is_opened_after_a_stop_is_aborted() -> None:
    """D01: a stream that was on its way when the client left."""
    watched = Watched()
    watched.client.leave()
    late = a_stream()
    watched.live.attach(StreamWatch(late, 0))
    assert late.aborts == 1


async def test_a_client_that_left_before_is_noticed_when_added() -> None:
    """INV-11: between the look and the watch nothing is lost."""
    requests = Watched().requests
    gone = RecordingConnection()
    gone.leave()
    live = LiveRequest(gone, 0)
    requests.add(live)
    assert live.stopped is not None


async def test_an_ended_stream_is_not_aborted() -> None:
    """Its id could be somebody's next."""
    watched = Watched()
    watched.live.detach(watched.watch)
    watched.client.leave()
    assert watched.stream.aborts == 0


async def test_the_first_event_has_its_own_patience(watched: Watched) -> None:
    """A long prefill is no stall; after it this stream alone is given up: another may be asked."""
    await watched.after(30_000)
    assert not watched.watch.timed_out
    assert await watched.after(1) is None
    assert watched.watch.timed_out
    assert watched.stream.aborts > 0


async def test_each_stream_has_its_own_time(watched: Watched) -> None:
    """A quick one that is silent does not end a slow one that is not, nor the other way round."""
    quick = StreamWatch(a_stream(), watched.clock.monotonic_us(), Patience(2_000_000, 1_000_000))
    watched.live.attach(quick)
    watched.event()
    assert await watched.after(2_001) is None
    assert (quick.timed_out, watched.watch.timed_out) == (True, False)
    watched.live.detach(quick)
    stopped = await watched.after(8_000)
    assert stopped is not None
    assert watched.watch.timed_out


async def test_an_end_that_does_not_come_is_not_waited_for(watched: Watched) -> None:
    """Finish and usage are known: a quarter of a second, and nobody has failed."""
    watched.event()
    watched.watch.finished = watched.watch.complete = True
    await watched.after(250)
    assert watched.stream.aborts == 0
    assert await watched.after(1) is None
    assert watched.stream.aborts > 0
    assert not watched.watch.timed_out


async def test_a_stall_is_between_two_events(watched: Watched) -> None:
    """Each event starts the time again."""
    for _ in range(5):
        watched.event()
        assert await watched.after(10_000) is None
    watched.event()
    stopped = await watched.after(10_001)
    assert stopped is not None
    assert isinstance(stopped.error, WorkerTimeout)


async def test_the_longest_duration_is_absolute(watched: Watched) -> None:
    """However busy."""
    for _ in range(10):
        watched.event()
        assert await watched.after(10_000) is None
    watched.event()
    assert await watched.after(1) is not None


async def test_a_slow_reader_is_given_up(watched: Watched) -> None:
    """It counts as gone, and nobody waits for it."""
    watched.client.blocked_since_us = watched.clock.monotonic_us()
    assert await watched.after(20_000) is None
    stopped = await watched.after(1)
    assert stopped is not None
    assert stopped.outcome is Outcome.CLIENT_CANCELLED
    assert watched.client.gave_up


async def test_a_slow_reader_is_not_the_workers_stall(watched: Watched) -> None:
    """While nothing is read because the client takes nothing, the worker is not to blame."""
    watched.event()
    watched.client.blocked_since_us = watched.clock.monotonic_us()
    assert await watched.after(19_000) is None
    watched.client.blocked_since_us = None
    assert await watched.after(1) is None
    assert await watched.after(10_001) is not None


async def test_empty_is_waited_for() -> None:
    """A shutdown knows when all has ended, or that it has not in time."""
    watched = Watched()
    assert len(watched.requests) == 1
    assert not await watched.requests.wait_empty(1)
    waiting = asyncio.create_task(watched.requests.wait_empty(5_000))
    watched.requests.remove(watched.live)
    assert await waiting
    await until(lambda: len(watched.requests) == 0)


async def test_usage_after_the_finish_is_waited_for_briefly(watched: Watched) -> None:
    """S26: an engine that finished has five seconds for its usage, not the whole stall time."""
    watched.event()
    watched.watch.finished = True
    assert await watched.after(5_000) is None
    stopped = await watched.after(1)
    assert stopped is not None
    assert stopped.outcome is Outcome.TIMED_OUT

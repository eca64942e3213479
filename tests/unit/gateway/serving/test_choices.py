import asyncio
import json
from collections.abc import Sequence
from typing import cast

import engine_events as events
import pytest
from memory_gateway import CHAT
from memory_ports import START_MS, MemoryDirectory, MemoryFleet, StandingClock
from scripted_engine import HANG, RecordingConnection, ScriptedEngine, Step
from tenant_examples import a_key, a_tenant, a_worker

from billing.domain.usage_record import Outcome
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import RequestClass, Worker
from gateway.errors import Overloaded, WorkerFailed, WorkerUnreachable
from gateway.serving.attempt import Upstream
from gateway.serving.authenticate import Caller
from gateway.serving.choice import Choice
from gateway.serving.choices import ChoiceStreams
from gateway.serving.hosted import HostedFallback, HostedRoute
from gateway.serving.live import LiveRequest
from gateway.serving.ports import EngineRefused
from gateway.serving.queue.held import HeldPlace
from gateway.serving.spending import spending_of
from gateway.wire.request import read_request
from gateway.wire.upstream import Event, read_event
from gateway.wire.usage import Usage


def a_choice(index: int = 0) -> Choice:
    def body(worker: Worker, attempt: int) -> tuple[str, bytes]:
        return f"{index}-{attempt}", worker.id.encode()

    return Choice(index=index, prompt=0, body=body)


class NoPlace:
    """As of a request that runs while the store of the queue is away: on any worker."""

    worker = None
    surrendered = False
    band = Band.INTERACTIVE

    def on_taken_back(self, callback: object) -> None:
        """It never is."""

    def began(self) -> bool:
        return True

    def runs_on(self, worker: str) -> None:
        """Nobody is told."""


async def _is_allowed() -> None:
    """Nothing was revoked meanwhile."""


class Streams:
    """The streams of some choices on scripted workers."""

    def __init__(
        self, *scripts: Sequence[Step], workers: int = 1, choices: int = 1, max_tokens: int = 1
    ) -> None:
        self.clock = StandingClock()
        self.directory = directory = MemoryDirectory(*(a_worker(f"w{i}") for i in range(workers)))
        self.fleet = MemoryFleet(directory)
        self.engine = ScriptedEngine(*scripts)
        self.choices = [a_choice(index) for index in range(choices)]
        self.live = LiveRequest(RecordingConnection(), self.clock.monotonic_us())
        hosted = HostedFallback(directory, self.clock)
        upstream = Upstream(self.engine, self.fleet, self.clock, hosted)
        request = read_request("chat", json.dumps(CHAT).encode(), {})
        caller = Caller(a_tenant(), a_key())
        spending = spending_of(
            caller, "m", directory, at_ms=START_MS, request_class=RequestClass.INTERACTIVE
        )
        route = HostedRoute(hosted, caller, request, spending)
        self.streams = ChoiceStreams(
            upstream,
            self.live,
            "/path",
            self.choices,
            route,
            pool="m",
            place=cast("HeldPlace", NoPlace()),
            max_tokens=max_tokens,
            check_caller=_is_allowed,
        )

    async def read(self) -> list[tuple[int, Event]]:
        async with asyncio.timeout(5):
            return [(choice.index, event) async for choice, _, event in self.streams.events()]


async def test_one_stream_is_read_to_its_end() -> None:
    """Opened with the choice's own id and body, closed once, counted on its worker meanwhile."""
    streams = Streams(events.answer(["a", "b"]))
    assert len(await streams.read()) == 5
    (stream,) = streams.engine.streams
    assert (stream.upstream_id, stream.body, stream.path) == ("0-1", b"w0", "/path")
    assert stream.closed
    assert streams.fleet.open == {"w0": 0}
    (attempt,) = streams.choices[0].ended_attempts
    assert (attempt.outcome, attempt.output_tokens) == (Outcome.COMPLETED, 2)


async def test_a_place_on_no_worker_is_on_none_of_another_pool() -> None:
    """The store is away: it is routed by the load here, among the workers of its pool."""
    streams = Streams(events.answer(["a"]), workers=2)
    streams.directory.all_workers[1] = a_worker("w1", request_class=RequestClass.BATCH)
    streams.fleet.open["w0"] = 50
    await streams.read()
    assert [stream.worker.id for stream in streams.engine.streams] == ["w0"]


async def test_streams_go_to_different_workers() -> None:
    """What this gateway has just opened counts as load."""
    streams = Streams(*[[*events.answer(["a"])]] * 4, workers=2, choices=4)
    await streams.read()
    assert sorted(stream.worker.id for stream in streams.engine.streams) == ["w0", "w0", "w1", "w1"]


async def test_no_worker_is_overloaded() -> None:
    """Nothing is opened."""
    streams = Streams(workers=0)
    with pytest.raises(Overloaded) as caught:
        await streams.read()
    assert caught.value.code == "no_worker"


async def test_a_second_attempt_begins_anew() -> None:
    """One row each; the choice's own counts are those of the stream that served it."""
    streams = Streams([WorkerUnreachable("x")], [*events.answer(["a"])], workers=2)
    await streams.read()
    choice = streams.choices[0]
    assert (choice.attempts, choice.output_tokens) == (2, 1)
    assert [a.output_tokens for a in choice.ended_attempts] == [0, 1]
    assert [stream.upstream_id for stream in streams.engine.streams] == ["0-1", "0-2"]


async def test_an_aborted_request_is_not_tried_elsewhere() -> None:
    """D01: the client has left while the connection was being made."""
    streams = Streams()

    def leave() -> None:
        streams.live.client_left()

    streams.engine.scripts = [[leave, HANG]]
    streams.engine.after_abort = [None]
    with pytest.raises(WorkerFailed):
        await streams.read()
    assert len(streams.engine.streams) == 1
    assert streams.choices[0].ended_attempts[0].outcome is Outcome.CLIENT_CANCELLED


async def test_after_one_choice_failed_no_other_is_begun_again() -> None:
    """Its siblings are being aborted: a new stream would only generate for nobody."""
    streams = Streams(
        [events.content("a"), WorkerFailed("gone")], [HANG], [HANG], workers=2, choices=2
    )
    streams.engine.after_abort = [[], None]
    with pytest.raises(WorkerFailed):
        await streams.read()
    assert len(streams.engine.streams) == 2


async def test_a_failure_reaches_the_reader_after_all_have_ended() -> None:
    """Then every stream is closed and every attempt has its row."""
    streams = Streams([events.content("a"), HANG], [EngineRefused(400, "no")], choices=2)
    with pytest.raises(EngineRefused):
        await streams.read()
    assert all(stream.closed for stream in streams.engine.streams)
    outcomes = [c.ended_attempts[0].outcome for c in streams.choices]
    assert outcomes == [Outcome.WORKER_FAILED, Outcome.REFUSED]


async def test_a_slow_reader_slows_the_streams_down() -> None:
    """Back-pressure: what waits between engine and client is bounded, however many choices."""
    flood: list[Step] = [events.content("x") for _ in range(200)]
    streams = Streams(*[[*flood, events.finish()]] * 3, choices=3)
    reader = streams.streams.events()
    await anext(reader)
    for _ in range(2_000):
        await asyncio.sleep(0)
    taken = sum(choice.deltas for choice in streams.choices)
    assert taken <= 4 * 3 + 3 + 1
    assert len([item async for item in reader]) == 3 * 201 - 1


def noted(*data: bytes) -> Choice:
    choice = a_choice()
    for index, each in enumerate(data):
        choice.note(read_event(each), 1_000 * index)
    return choice


def test_the_last_usage_wins() -> None:
    """DESIGN 7: usage is cumulative; only what follows the finish, or comes with it, is final."""
    choice = noted(
        events.content("a", usage=events.counts(5, 1)),
        events.content("b", usage=events.counts(5, 3)),
    )
    assert (choice.output_tokens, choice.usage_is_final) == (3, False)
    choice.note(read_event(events.finish(usage=events.counts(5, 3))), 0)
    assert choice.usage_is_final
    choice.note(read_event(events.usage(5, 4)), 0)
    assert (choice.usage, choice.usage_is_final) == (Usage(5, 4, None, 0), True)


def test_times_are_of_content() -> None:
    """A role chunk is no first token; the gap is the longest between two content chunks."""
    choice = noted(events.role(), events.content("a"), events.role(), events.content("b"))
    assert (choice.first_token_us, choice.last_token_us, choice.gap_us_max) == (1_000, 3_000, 2_000)


def test_an_abort_is_no_finish() -> None:
    """INV-14: nor is silence."""
    assert not noted(events.content("a")).finished
    assert not noted(events.finish("abort")).finished
    assert noted(events.finish("length")).finished

"""What can happen to a request, as far as its trace says something of it: each by name, run on a
straight line in memory, on a clock that stands but where a step moves it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from unittest import mock

import engine_events as events
from hosted_gateway import REFUSED, a_gateway
from memory_gateway import MemoryGateway, until
from one_place import one_place
from scripted_engine import RecordingConnection, Step
from tenant_examples import AT_ONCE, COUNTED, a_key, a_tenant
from traced_requests import Traces, traced

from gateway.domain.tenant import Limits
from gateway.errors import Overloaded
from gateway.serving import completion
from gateway.serving.relay import Ending

Scenario = Callable[[], Awaitable[Traces]]
BUG = "a bug's own words, which quote a prompt"
CLIENT = {b"traceparent": b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


def timed(gateway: MemoryGateway) -> list[Step]:
    """Two tokens, 30 ms after the request and 10 ms later, with all that an engine can say."""
    return [
        lambda: gateway.clock.advance(30),
        events.role(),
        events.content("a"),
        lambda: gateway.clock.advance(10),
        events.content("b"),
        events.finish("stop"),
        events.usage(5, 2, cached=3, reasoning=1),
    ]


async def answered() -> Traces:
    """All went well."""
    gateway = MemoryGateway([])
    gateway.directory.one_tenant = a_tenant(COUNTED)
    gateway.engine.scripts = [timed(gateway)]
    traces = traced(gateway)
    await gateway.post(stream=True)
    return traces


async def two_choices() -> Traces:
    """Both of one prompt, without a maximum, in one text each."""
    gateway = MemoryGateway(
        [
            events.chunk(text="a"),
            events.chunk(text="", finish="content_filter"),
            events.usage(5, 1),
        ],
        [events.chunk(text="b"), events.chunk(text="", finish="stop"), events.usage(5, 1)],
    )
    traces = traced(gateway)
    await gateway.serve(
        gateway.a_client({"model": "m", "prompt": "hi", "n": 2}), endpoint="completions"
    )
    return traces


async def batch() -> Traces:
    """As the key's class, or the header, has it."""
    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway)
    await gateway.serve(gateway.a_client(), headers={b"x-weir-class": b"batch"})
    return traces


async def fell_back() -> Traces:
    """One worker could not be reached, another failed, a provider answered."""
    gateway = a_gateway([REFUSED], [events.error(500)], events.answer(["x"]), workers=2)
    traces = traced(gateway)
    await gateway.post()
    return traces


async def odd_end() -> Traces:
    """The engine ended with a word of its own."""
    gateway = MemoryGateway([events.content("a"), events.finish("odd word"), events.usage(5, 1)])
    traces = traced(gateway)
    await gateway.post()
    return traces


async def engine_refused() -> Traces:
    """With a 400."""
    gateway = MemoryGateway([events.error(400, "odd words")])
    traces = traced(gateway)
    await gateway.post()
    return traces


async def over_a_limit() -> Traces:
    """The tenant's own, of requests a minute."""
    gateway = MemoryGateway(events.answer(["a"]))
    gateway.directory.one_tenant = a_tenant(Limits(rpm=1))
    traces = traced(gateway)
    await gateway.post()
    await gateway.post()
    return traces


async def waited() -> Traces:
    """For 40 ms, until the only place was free."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])], events.answer(["b"])) as gateway:
        return await _second_waits(gateway, go_on)


async def parked() -> Traces:
    """For 40 ms, until its tenant had a sequence."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts, places=2) as gateway:
        gateway.directory.one_tenant = a_tenant(Limits(max_sequences=1))
        return await _second_waits(gateway, go_on)


async def _second_waits(gateway: MemoryGateway, go_on: asyncio.Event) -> Traces:
    first = asyncio.create_task(gateway.post())
    await until(lambda: len(gateway.engine.streams) == 1)
    traces = traced(gateway)
    second = asyncio.create_task(gateway.post())
    await until(lambda: gateway.places.count == 2 and _is_waiting(gateway))
    gateway.clock.advance(40)
    go_on.set()
    await asyncio.gather(first, second)
    return traces


def _is_waiting(gateway: MemoryGateway) -> bool:
    return any(entry.is_waiting for entry in gateway.places._book)


async def parked_in_vain() -> Traces:
    """Until its wait was over."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])], places=2) as gateway:
        gateway.directory.one_tenant = a_tenant(Limits(max_sequences=1, max_wait_ms=30))
        return await _second_is_refused(gateway, go_on)


async def no_place() -> Traces:
    """And it may not wait for one."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])], limits=AT_ONCE) as gateway:
        return await _second_is_refused(gateway, go_on)


async def _second_is_refused(gateway: MemoryGateway, go_on: asyncio.Event) -> Traces:
    first = asyncio.create_task(gateway.post())
    await until(lambda: len(gateway.engine.streams) == 1)
    traces = traced(gateway)
    await gateway.post()
    go_on.set()
    await first
    return traces


async def queue_full() -> Traces:
    """As many of its tenant wait as may."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts, limits=Limits(max_queued=1)) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post())
        await until(lambda: gateway.places.count == 2 and _is_waiting(gateway))
        traces = traced(gateway)
        await gateway.post()
        go_on.set()
        await asyncio.gather(first, second)
        return traces


async def nobody() -> Traces:
    """Whose key is none."""
    return await _before(lambda gateway: gateway.serve(gateway.a_client(), headers=_no_key()))


def _no_key() -> dict[bytes, bytes]:
    return {b"authorization": b"Bearer sk-weir-of-nobody"}


async def unreadable() -> Traces:
    """Whose body is none."""
    return await _before(lambda gateway: gateway.post(b"{"))


async def too_long() -> Traces:
    """For the model."""
    return await _before(lambda gateway: gateway.post(max_tokens=5_000))


async def gone_early() -> Traces:
    """While its body was read."""
    return await _before(lambda gateway: gateway.serve(RecordingConnection(leaves_early=True)))


async def _before(ask: Callable[[MemoryGateway], Awaitable[object]]) -> Traces:
    gateway = MemoryGateway()
    traces = traced(gateway)
    await ask(gateway)
    return traces


async def no_worker() -> Traces:
    """There at all, and it may not wait for one."""
    gateway = MemoryGateway(workers=0)
    gateway.directory.keys = [a_key(AT_ONCE)]
    traces = traced(gateway)
    await gateway.post()
    return traces


async def not_journaled() -> Traces:
    """Its admission, so it is none."""
    gateway = MemoryGateway()

    refusal = Overloaded("usage cannot be recorded", code="metering_unavailable")
    traces = traced(gateway)
    with mock.patch.object(gateway.journal, "admitted", side_effect=refusal):
        await gateway.post()
    return traces


def with_a_bug_in(step: str) -> Scenario:
    """Of how it is closed: `usage`, `record` or `settle`."""

    async def scenario() -> Traces:
        gateway = MemoryGateway(events.answer(["a"]))
        closing: Any = gateway.completions._closing
        right = getattr(closing, step)

        async def fail(*_: object) -> None:
            setattr(closing, step, right)
            raise RuntimeError(BUG)

        setattr(closing, step, fail)
        traces = traced(gateway)
        await gateway.post()
        return traces

    return scenario


async def with_a_bug_in_the_stream() -> Traces:
    """Where nothing is expected to raise."""
    gateway = MemoryGateway([])

    async def fail(*_: object) -> Ending:
        raise RuntimeError(BUG)

    traces = traced(gateway)
    with mock.patch.object(completion, "relay", fail):
        await gateway.post()
    return traces

"""A request waits for its place before it is admitted, and batch gives its own back."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import engine_events as events
import pytest
from hosted_examples import a_provider
from hosted_gateway import ALLOWED
from memory_gateway import error_of, text_of, until
from one_place import BATCH, one_place
from scripted_engine import Step
from tenant_examples import AT_ONCE, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits

FORMS = pytest.mark.parametrize("stream", [True, False])


@FORMS
async def test_a_second_request_waits_for_the_first(stream: bool) -> None:
    """Q01: both are served, one after the other; nothing is charged for who waits."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        first = asyncio.create_task(gateway.post(stream=stream))
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post(stream=stream))
        await until(lambda: gateway.places.count == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(gateway.journal.admissions), gateway.leases.held) == (1, 1)
        go_on.set()
        assert [(await each).status for each in (first, second)] == [200, 200]
        assert [each.outcome for each in gateway.journal.records] == [Outcome.COMPLETED] * 2


async def test_who_leaves_while_waiting_is_gone_at_once() -> None:
    """No row, no lease, no ticket; the place is another's."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])]) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        leaving = gateway.a_client()
        second = asyncio.create_task(gateway.serve(leaving))
        await until(lambda: gateway.places.count == 2)
        leaving.leave()
        await second
        assert (leaving.status, gateway.places.count) == (None, 1)
        go_on.set()
        await first
        assert len(gateway.journal.records) == 1


async def test_who_may_not_wait_is_told_that_there_is_no_capacity() -> None:
    """With `max_queued` 0."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])], limits=AT_ONCE) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        refused = await gateway.post()
        assert (refused.status, error_of(refused)["code"]) == (503, "no_capacity")
        assert b"retry-after" in refused.headers
        go_on.set()
        await first


@FORMS
async def test_batch_gives_its_place_back_before_its_first_token(stream: bool) -> None:
    """Q10: it is aborted, waits again and is served then: one row, billed once, two attempts."""
    silent = asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], events.answer(["i"]), events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        client = gateway.a_client(stream=stream)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        interactive = await gateway.post()
        assert interactive.status == 200
        await batch
        assert client.status == 200
        assert gateway.engine.streams[0].aborts == 1
        by_class = {each.request_class: each for each in gateway.journal.records}
        record = by_class["batch"]
        assert (record.outcome, record.billable) == (Outcome.COMPLETED, True)
        outcomes = [each.outcome for each in record.attempts]
        assert outcomes == [Outcome.TAKEN_BACK, Outcome.COMPLETED]
        assert len(gateway.journal.records) == 2
        if stream:
            assert text_of(client) == "b"


async def test_what_the_engine_finished_after_all_is_dropped() -> None:
    """The abort came too late: the attempt was taken back all the same, its text is nobody's."""
    silent = asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], events.answer(["i"]), events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        gateway.engine.after_abort = [events.answer(["dropped"])]
        client = gateway.a_client(stream=True)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        await gateway.post()
        await batch
        assert text_of(client) == "b"
        (record,) = (each for each in gateway.journal.records if each.request_class == "batch")
        outcomes = [each.outcome for each in record.attempts]
        assert outcomes == [Outcome.TAKEN_BACK, Outcome.COMPLETED]
        assert record.output_tokens == record.attempts[1].output_tokens


async def test_batch_that_sends_keeps_its_place() -> None:
    """Interactive waits for its end."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [
        [events.content("b"), go_on, *events.answer(["b"])],
        events.answer(["i"]),
    ]
    async with one_place(*scripts) as gateway:
        client = gateway.a_client(stream=True)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: client.status == 200)
        interactive = asyncio.create_task(gateway.post())
        await until(lambda: gateway.places.count == 2)
        for _ in range(50):
            await asyncio.sleep(0)
        assert gateway.engine.streams[0].aborts == 0
        assert len(gateway.engine.streams) == 1
        go_on.set()
        await batch
        assert (await interactive).status == 200


@FORMS
async def test_the_wait_is_told_and_recorded(stream: bool) -> None:
    """`x-weir-queue-ms` and the row's `queue_ms` are the same number."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post(stream=stream))
        await until(lambda: gateway.places.count == 2)
        gateway.clock.advance(250)
        go_on.set()
        assert (await first).headers[b"x-weir-queue-ms"] == b"0"
        client = await second
        assert client.headers[b"x-weir-queue-ms"] == b"250"
        assert [each.queue_ms for each in gateway.journal.records] == [0, 250]


@FORMS
async def test_who_is_refused_after_a_wait_is_told_how_long_it_was(stream: bool) -> None:
    """At its deadline: 503, with the header of an answer."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])]) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        client = gateway.a_client(stream=stream)
        headers = {b"x-weir-max-wait-ms": b"50"}
        second = asyncio.create_task(gateway.serve(client, headers=headers))
        await until(lambda: gateway.places.count == 2)
        gateway.clock.advance(250)
        await second
        assert (client.status, error_of(client)["code"]) == (503, "no_capacity")
        assert client.headers[b"x-weir-queue-ms"] == b"250"
        go_on.set()
        await first


async def test_a_refusal_that_no_wait_came_before_says_nothing_of_one() -> None:
    """What is wrong with a request is told before it asks for a place."""
    async with one_place() as gateway:
        client = await gateway.post(max_tokens=10**6)
        assert client.status == 400
        assert b"x-weir-queue-ms" not in client.headers


@FORMS
async def test_who_goes_to_a_provider_is_told_how_long_it_waited_for_a_worker(
    stream: bool,
) -> None:
    """And so says its row."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["h"])]
    async with one_place(*scripts) as gateway:
        gateway.directory.one_tenant = a_tenant(ALLOWED)
        gateway.directory.all_providers = [a_provider()]
        gateway.places.settings = replace(gateway.places.settings, hosted_after_ms=50)
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post(stream=stream))
        await until(lambda: gateway.places.count == 2)
        gateway.clock.advance(40)
        client = await second
        assert client.status == 200
        assert client.headers[b"x-weir-queue-ms"] == b"40"
        record = gateway.record
        assert (record.provider, record.queue_ms) == ("hosted:acme-ai", 40)
        assert gateway.journal.admissions[-1].queue_ms == 40
        go_on.set()
        await first


async def test_without_a_worker_it_waits_for_one() -> None:
    """DESIGN 10: all workers are gone, nobody else may serve: it waits to its deadline."""
    async with one_place(events.answer(["a"])) as gateway:
        gateway.fleet.unhealthy = {"w0"}
        asking = asyncio.create_task(gateway.post())
        for _ in range(50):
            await asyncio.sleep(0)
        assert (asking.done(), gateway.journal.admissions) == (False, [])
        gateway.clock.advance(1_500)
        gateway.fleet.unhealthy = set()
        answered = await asking
        assert answered.status == 200
        assert int(answered.headers[b"x-weir-queue-ms"]) == 1_500
        assert gateway.record.queue_ms == 1_500


async def test_without_a_worker_until_its_deadline_it_is_told_so() -> None:
    async with one_place(limits=Limits(max_wait_ms=60)) as gateway:
        gateway.fleet.unhealthy = {"w0"}
        refused = await gateway.post()
        assert (refused.status, error_of(refused)["code"]) == (503, "no_worker")
        assert b"x-weir-queue-ms" in refused.headers
        assert not gateway.journal.admissions


async def test_who_leaves_while_no_worker_is_there_leaves_nothing() -> None:
    async with one_place() as gateway:
        gateway.fleet.unhealthy = {"w0"}
        leaving = gateway.a_client()
        asking = asyncio.create_task(gateway.serve(leaving))
        for _ in range(50):
            await asyncio.sleep(0)
        leaving.leave()
        await asking
        assert (leaving.status, gateway.places.count) == (None, 0)

"""What changes while a request waits holds when it has waited; what it is sent is sent once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import engine_events as events
import msgspec
import pytest
from hosted_examples import a_provider
from hosted_gateway import ALLOWED
from memory_gateway import MemoryGateway, error_of, until
from one_place import BATCH, one_place
from scripted_engine import RecordingConnection, Step
from tenant_examples import a_key, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits
from gateway.errors import WorkerUnreachable

LONG_MS = 200
"""So long after its arrival a request's caller is read again."""


async def waits_behind_one(
    gateway: MemoryGateway,
) -> "tuple[asyncio.Task[RecordingConnection], asyncio.Task[RecordingConnection]]":
    """One request that runs, and one that waits for its place."""
    first = asyncio.create_task(gateway.post())
    await until(lambda: len(gateway.engine.streams) == 1)
    second = asyncio.create_task(gateway.post())
    await until(lambda: gateway.places.count == 2)
    gateway.clock.advance(LONG_MS)
    return first, second


@pytest.mark.parametrize("what", ["revoked", "suspended", "model"])
async def test_who_may_not_ask_any_more_is_refused_after_the_wait(what: str) -> None:
    """As a request that came now would be: nothing runs for it, nothing is charged."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])]) as gateway:
        first, second = await waits_behind_one(gateway)
        if what == "revoked":
            gateway.directory.keys = [a_key(Limits(), revoked_at_ms=1)]
        elif what == "suspended":
            gateway.directory.one_tenant = a_tenant(suspended=True)
        else:
            gateway.directory.keys = [a_key(Limits(), models=("another",))]
        go_on.set()
        await first
        refused = await second
        assert refused.status == (403 if what == "model" else 401)
        assert (len(gateway.engine.streams), len(gateway.journal.admissions)) == (1, 1)


async def test_a_limit_that_was_lowered_meanwhile_holds() -> None:
    """INV-2: the limit then in force."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])]) as gateway:
        first, second = await waits_behind_one(gateway)
        key = gateway.directory.keys[0]
        lowered = msgspec.structs.replace(key.limits, max_sequences=0, max_queued=0)
        gateway.directory.keys = [a_key(lowered, limits_version=2)]
        go_on.set()
        await first
        refused = await second
        assert refused.status in (400, 429), refused.sent
        assert len(gateway.journal.admissions) == 1


async def test_who_may_go_to_a_provider_waits_as_long_for_its_own_limits() -> None:
    """Q01: its own limit has no room; that is no reason to tell it earlier than others."""
    go_on = asyncio.Event()
    limits = Limits(max_sequences=1, max_wait_ms=10_000)
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts, limits=limits, places=10) as gateway:
        gateway.directory.one_tenant = a_tenant(ALLOWED)
        gateway.directory.all_providers = [a_provider()]
        gateway.places.settings = replace(gateway.places.settings, hosted_after_ms=20)
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post())
        await until(lambda: gateway.places.parked == 1)
        gateway.clock.advance(60)
        await asyncio.sleep(0.05)
        assert not second.done()
        go_on.set()
        await first
        assert (await second).status == 200


@pytest.mark.parametrize("choices", [1, 3])
async def test_a_role_that_came_before_the_place_was_taken_back_is_sent_once(choices: int) -> None:
    """Nothing of a stream that batch may still give back reaches the client."""
    silent = asyncio.Event()
    given_up: list[Sequence[Step]] = [[events.role(), silent]] * choices
    kept: list[Sequence[Step]] = [[events.role(), *events.answer(["b"])]] * choices
    scripts = [*given_up, events.answer(["i"]), *kept]
    alone = MemoryGateway(*kept)
    expected = (await alone.post(stream=True, n=choices)).sent.count(b'"role"')
    async with one_place(*scripts, places=choices) as gateway:
        client = gateway.a_client(stream=True, n=choices)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == choices)
        for _ in range(50):
            await asyncio.sleep(0)
        assert (client.status, client.sent) == (None, b"")
        await gateway.post()
        await batch
        assert client.sent.count(b'"content":"b"') == choices
        assert client.sent.count(b'"role"') == expected


async def test_batch_that_gets_no_place_again_is_refused_and_owes_nothing() -> None:
    """Its gateway stops: a status, since nothing was sent, and a row of a refusal."""
    silent, go_on = asyncio.Event(), asyncio.Event()
    scripts: list[Sequence[Step]] = [[events.role(), silent], [go_on, *events.answer(["i"])]]
    async with one_place(*scripts) as gateway:
        client = gateway.a_client(stream=True)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        interactive = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 2)
        gateway.places.stop_all()
        await batch
        assert (client.status, error_of(client)["code"]) == (503, "no_capacity")
        (record,) = gateway.journal.records
        assert (record.outcome, record.output_tokens) == (Outcome.REFUSED, 0)
        assert not record.billable
        go_on.set()
        await interactive


async def test_the_place_of_several_choices_follows_them_to_another_worker() -> None:
    """Else the worker that they run on would be sent more than it has room for."""
    hold = asyncio.Event()
    scripts: list[Sequence[Step]] = [
        [WorkerUnreachable("away")],
        [events.content("a"), hold, *events.answer(["a"])],
        [events.content("b"), hold, *events.answer(["b"])],
    ]
    async with one_place(*scripts, places=4, workers=2) as gateway:
        asking = asyncio.create_task(gateway.post(n=2, stream=True))
        await until(lambda: len(gateway.engine.streams) == 3)
        await gateway.places.until_told()
        at = {stream.worker.id for stream in gateway.engine.streams[1:]}
        rooms = gateway.queues.pools["m"].rooms
        assert [name for name, room in rooms.items() if room.running] == list(at)
        hold.set()
        await asking

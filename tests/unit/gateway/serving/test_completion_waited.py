"""What changes while a request waits holds when it has waited; what it is sent is sent once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import engine_events as events
import msgspec
import pytest
from hosted_examples import a_provider
from hosted_gateway import ALLOWED
from memory_gateway import MemoryGateway, error_of, until
from one_place import BATCH, one_place
from queue_examples import enter, ticket
from scripted_engine import RecordingConnection, Step
from tenant_examples import a_key, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.queue.pool import Pool
from gateway.domain.tenant import Limits
from gateway.errors import WorkerUnreachable

FORMS = pytest.mark.parametrize("stream", [True, False])
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


@FORMS
async def test_a_place_on_a_worker_that_is_not_found_here_yet_is_kept_for_it(stream: bool) -> None:
    """Another gateway has: nobody is told that there is none while one is there."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post(stream=stream))
        await until(lambda: gateway.places.count == 2)
        gateway.fleet.unhealthy = {"w0"}
        go_on.set()
        assert (await first).status == 200
        await asyncio.sleep(0.3)
        assert not second.done()
        assert len(gateway.journal.admissions) == 1
        gateway.fleet.unhealthy = set()
        assert (await second).status == 200


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


async def test_who_waits_through_a_standstill_goes_on_once_a_store_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B07: nothing is decided on what was seen before it, and nobody is refused for it."""
    go_on = asyncio.Event()
    async with one_place([go_on, *events.answer(["a"])], events.answer(["b"])) as gateway:
        first, second = await waits_behind_one(gateway)
        gateway.directory.revocations_age_ms = 2**53

        async def waken() -> None:
            await asyncio.sleep(0)
            gateway.directory.revocations_age_ms = 0

        monkeypatch.setattr(gateway.directory, "waken", waken)
        go_on.set()
        assert [(await first).status, (await second).status] == [200, 200]


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


@asynccontextmanager
async def a_full_pool_and_a_full_limit(
    *scripts: Sequence[Step], wait_ms: int
) -> AsyncIterator[MemoryGateway]:
    """Somebody else has the only place, for long, and one more of the tenant waits for it; a
    request of the key runs at a provider, and the key may have no more."""
    limits = Limits(max_sequences=1, max_wait_ms=wait_ms)
    async with one_place(*scripts, limits=limits) as gateway:
        gateway.directory.one_tenant = a_tenant(ALLOWED)
        gateway.directory.all_providers = [a_provider()]
        gateway.places.settings = replace(gateway.places.settings, hosted_after_ms=50)
        other = ticket("other", "somebody", deadline_ms=2**50)
        ahead = ticket("ahead", "acme", deadline_ms=gateway.queues.clock.now_ms() + 1_500)
        gateway.queues.step("m", lambda pool, now_ms: enter(pool, other, ahead, now_ms=now_ms))
        gateway.queues.pools["m"].speed.departed(10, held_ms=100_000)
        yield gateway
        leave_with_the_place(gateway)


def leave_with_the_place(gateway: MemoryGateway) -> None:
    """Somebody else's ends; harmless twice."""

    def leave(pool: Pool, now_ms: int) -> None:
        for name in ("ahead", "other"):
            pool.leave(name, actual_cost=None, now_ms=now_ms)

    gateway.queues.step("m", leave)


@pytest.mark.parametrize("comes_free", ["place", "limit"])
async def test_with_the_pool_full_too_it_waits_as_long_for_its_own_limits(comes_free: str) -> None:
    """However long the wait for a place is predicted to be: a provider has room."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *events.answer(["a"])], events.answer(["b"])]
    async with a_full_pool_and_a_full_limit(*scripts, wait_ms=2_000) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post())
        await until(lambda: gateway.places.count == 1)
        await asyncio.sleep(0.2)
        assert not second.done()
        if comes_free == "place":
            leave_with_the_place(gateway)
            await until(lambda: gateway.places.parked == 1)
        go_on.set()
        assert (await first).status == 200
        assert (await second).status == 200
        at = [stream.worker.id for stream in gateway.engine.streams]
        assert at[1] == ("w0" if comes_free == "place" else at[0])


async def test_with_the_pool_full_too_it_is_told_of_its_own_limits_when_its_wait_is_over() -> None:
    """That is what it waited for."""
    go_on = asyncio.Event()
    async with a_full_pool_and_a_full_limit(
        [go_on, *events.answer(["a"])], wait_ms=1_800
    ) as gateway:
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        refused = await gateway.post()
        assert (refused.status, error_of(refused)["type"]) == (429, "sequences")
        assert loop.time() - asked_s >= 1.7
        go_on.set()
        await first


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


@FORMS
@pytest.mark.parametrize("what", ["revoked", "suspended", "model"])
async def test_batch_that_may_not_ask_any_more_is_refused_when_it_has_a_place_again(
    what: str, stream: bool
) -> None:
    """Nothing runs for it, its place is free for the next, and it owes nothing."""
    silent, go_on = asyncio.Event(), asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], [go_on, *events.answer(["i"])], events.answer(["n"])]
    async with one_place(*scripts) as gateway:
        client = gateway.a_client(stream=stream)
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        interactive = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 2)
        gateway.clock.advance(LONG_MS)
        allowed = gateway.directory.keys
        if what == "revoked":
            gateway.directory.keys = [a_key(Limits(), revoked_at_ms=1)]
        elif what == "suspended":
            gateway.directory.one_tenant = a_tenant(suspended=True)
        else:
            gateway.directory.keys = [a_key(Limits(), models=("another",))]
        go_on.set()
        await interactive
        await batch
        assert client.status == (403 if what == "model" else 401)
        (record,) = (each for each in gateway.journal.records if each.request_class == "batch")
        assert (record.outcome, record.billable) == (Outcome.REFUSED, False)
        assert [each.outcome for each in record.attempts] == [Outcome.TAKEN_BACK]
        gateway.directory.keys, gateway.directory.one_tenant = allowed, a_tenant()
        assert (await gateway.post()).status == 200


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

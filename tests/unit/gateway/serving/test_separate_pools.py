"""Workers that are reserved for a class: its requests go there and to no other, and nobody else's
do."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from engine_events import answer
from hosted_examples import a_provider
from hosted_gateway import ALLOWED
from memory_gateway import MemoryGateway, error_of, until
from scripted_engine import Step
from tenant_examples import a_key, a_tenant, a_worker

from billing.domain.usage_record import Outcome
from gateway.domain.engine_facts import EngineFacts
from gateway.domain.tenant import Limits, RequestClass
from gateway.errors import WorkerFailed, WorkerUnreachable

BATCH = {b"x-weir-class": b"batch"}
HEADERS: dict[RequestClass, dict[bytes, bytes]] = {
    RequestClass.INTERACTIVE: {},
    RequestClass.BATCH: BATCH,
}
EACH_CLASS = pytest.mark.parametrize("reserved", list(RequestClass))


@asynccontextmanager
async def two_workers(
    *scripts: Sequence[Step],
    reserved: RequestClass | None = RequestClass.BATCH,
    limits: Limits | None = None,
    workers: int = 2,
) -> AsyncIterator[MemoryGateway]:
    """`w0` serves whatever has no worker of its own; `w1` is reserved. Requests wait."""
    gateway = MemoryGateway(*scripts, workers=workers)
    gateway.directory.keys = [a_key(limits or Limits())]
    if reserved is not None:
        gateway.reserve("w1", reserved)
    loop = asyncio.create_task(gateway.places.run())
    try:
        yield gateway
    finally:
        loop.cancel()
        await asyncio.wait([loop])
    gateway.assert_at_rest()


def asked(gateway: MemoryGateway) -> list[str]:
    """The workers that were sent something, in order."""
    return [stream.worker.id for stream in gateway.engine.streams]


def other_than(reserved: RequestClass) -> RequestClass:
    (other,) = set(RequestClass) - {reserved}
    return other


@EACH_CLASS
async def test_each_class_is_sent_to_its_own_workers(reserved: RequestClass) -> None:
    """However much runs there and however little elsewhere."""
    scripts = [answer(["a"])] * 8
    async with two_workers(*scripts, reserved=reserved) as gateway:
        for busy in ("w0", "w1"):
            gateway.fleet.open[busy] = 50
            for request_class in [reserved, other_than(reserved)] * 2:
                client = gateway.a_client()
                await gateway.serve(client, headers=HEADERS[request_class])
                assert client.status == 200
            gateway.fleet.open[busy] = 0
        assert asked(gateway) == ["w1", "w0"] * 4


@EACH_CLASS
@pytest.mark.parametrize("failure", [WorkerUnreachable("refused"), WorkerFailed("500")])
async def test_after_a_failure_no_worker_of_another_pool_is_tried(
    reserved: RequestClass, failure: Exception
) -> None:
    """Not by who is of the class, nor by who is not."""
    for request_class, own in ((reserved, "w1"), (other_than(reserved), "w0")):
        async with two_workers([failure], answer(["x"]), reserved=reserved) as gateway:
            client = gateway.a_client()
            await gateway.serve(client, headers=HEADERS[request_class])
            assert asked(gateway) == [own]
            unreachable = isinstance(failure, WorkerUnreachable)
            assert client.status == (503 if unreachable else 502)


async def test_after_a_failure_another_of_its_pool_is_tried() -> None:
    async with two_workers([WorkerFailed("500")], answer(["x"]), workers=3) as gateway:
        gateway.reserve("w2", RequestClass.BATCH)
        client = gateway.a_client()
        await gateway.serve(client, headers=BATCH)
        assert client.status == 200
        assert sorted(asked(gateway)) == ["w1", "w2"]


async def test_a_full_worker_of_its_own_is_waited_for() -> None:
    """Though the other is idle."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *answer(["a"])], answer(["b"])]
    async with two_workers(*scripts) as gateway:
        gateway.reserve("w1", RequestClass.BATCH, sequences=1)
        clients = [gateway.a_client(), gateway.a_client()]
        tasks = [asyncio.create_task(gateway.serve(each, headers=BATCH)) for each in clients]
        await until(lambda: gateway.places.count == 2 and len(gateway.engine.streams) == 1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert asked(gateway) == ["w1"]
        go_on.set()
        await asyncio.gather(*tasks)
        assert (asked(gateway), [each.status for each in clients]) == (["w1"] * 2, [200] * 2)


async def test_batch_that_was_taken_back_stays_in_its_pool() -> None:
    """It asked before a worker was reserved for its class: it is sent where it waited."""
    silent = asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], answer(["i"]), answer(["b"])]
    async with two_workers(*scripts, reserved=None, workers=1) as gateway:
        gateway.queues.room("w0", 1)
        client = gateway.a_client()
        batch = asyncio.create_task(gateway.serve(client, headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        add_reserved(gateway)
        assert (await gateway.post()).status == 200
        await batch
        assert client.status == 200
        assert asked(gateway) == ["w0"] * 3
        by_class = {each.request_class: each for each in gateway.journal.records}
        outcomes = [each.outcome for each in by_class["batch"].attempts]
        assert outcomes == [Outcome.TAKEN_BACK, Outcome.COMPLETED]


async def test_who_waits_while_a_worker_is_reserved_stays_in_its_pool() -> None:
    """Who comes afterwards goes to the reserved one."""
    go_on = asyncio.Event()
    scripts: list[Sequence[Step]] = [[go_on, *answer(["a"])], answer(["new"]), answer(["old"])]
    async with two_workers(*scripts, reserved=None, workers=1) as gateway:
        gateway.queues.room("w0", 1)
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        waiting = asyncio.create_task(gateway.serve(gateway.a_client(), headers=BATCH))
        await until(lambda: gateway.places.count == 2)
        add_reserved(gateway)
        await gateway.serve(gateway.a_client(), headers=BATCH)
        assert asked(gateway) == ["w0", "w1"]
        go_on.set()
        await asyncio.gather(first, waiting)
        assert asked(gateway) == ["w0", "w1", "w0"]


@EACH_CLASS
async def test_a_class_waits_for_its_own_workers_that_are_away(reserved: RequestClass) -> None:
    """And is told so at its deadline, though another worker of the model is there."""
    async with two_workers(answer(["a"]), reserved=reserved) as gateway:
        gateway.fleet.unhealthy = {"w1"}
        client = gateway.a_client()
        headers = {**HEADERS[reserved], b"x-weir-max-wait-ms": b"40"}
        await gateway.serve(client, headers=headers)
        assert (client.status, error_of(client)["code"]) == (503, "no_worker")
        assert error_of(client)["message"] == "no worker of m is ready"
        assert asked(gateway) == []
        waiting = asyncio.create_task(gateway.serve(gateway.a_client(), headers=HEADERS[reserved]))
        for _ in range(50):
            await asyncio.sleep(0)
        gateway.fleet.unhealthy = set()
        await waiting
        assert asked(gateway) == ["w1"]


async def test_where_all_are_reserved_for_the_other_class_there_is_no_worker() -> None:
    """It waits as where all are away, and leaves nothing."""
    async with two_workers(limits=Limits(max_wait_ms=40)) as gateway:
        gateway.reserve("w0", RequestClass.BATCH)
        refused = await gateway.post()
        assert (refused.status, error_of(refused)["code"]) == (503, "no_worker")
        assert b"x-weir-queue-ms" in refused.headers
        assert not gateway.journal.admissions


async def test_interactive_goes_to_a_provider_before_it_goes_to_batchs_worker() -> None:
    """The fallback is for who has no worker of its pool."""
    async with two_workers(answer(["hosted"])) as gateway:
        gateway.directory.one_tenant = a_tenant(ALLOWED)
        gateway.directory.all_providers = [a_provider()]
        gateway.fleet.unhealthy = {"w0"}
        assert (await gateway.post()).status == 200
        assert gateway.record.provider == "hosted:acme-ai"


async def test_a_request_has_to_fit_an_engine_of_its_pool() -> None:
    """What only the other pool's would hold is refused at once."""
    async with two_workers(answer(["a"])) as gateway:
        gateway.fleet.facts["w1"] = EngineFacts(context_tokens=30)
        body = {"max_tokens": 50}
        client = gateway.a_client(**body)
        await gateway.serve(client, headers=BATCH)
        assert (client.status, error_of(client)["code"]) == (400, "context_length_exceeded")
        assert (await gateway.post(**body)).status == 200


def add_reserved(gateway: MemoryGateway) -> None:
    """One more worker, reserved for batch, while the gateway runs."""
    gateway.directory.all_workers.append(a_worker("w1", request_class=RequestClass.BATCH))
    gateway.queues.room("w1", 10**6, pool="m#batch")

"""Waiting for a place, as clients see it: two gateways before a worker with room for two."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
import servers
from pool_store import PoolStore
from queue_http_system import (
    LONG,
    Answer,
    Clients,
    at_rest,
    clients,
    new_key,
    new_tenant,
    queue_system,
    store_of,
    until_waiting,
)
from weir_dev import WeirDev
from worker_process import running_worker

SLOTS = 2
MODEL = {"default_output_tokens": 16, "max_output_tokens": 1_024}
LASTS_S = 1.4
"""A request of the usual length, alone, as simulated."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """A system whose worker holds two requests at a time."""
    folder = tmp_path_factory.mktemp("queue")
    with queue_system(folder, slots=SLOTS, gateways=2) as started:
        yield started


@pytest.fixture
def tenant(system: WeirDev) -> WeirDev:
    """A tenant of this test's own that may wait."""
    return new_tenant(system)


@pytest.fixture
def store(system: WeirDev) -> Iterator[PoolStore]:
    """The pool in the store."""
    with store_of(system) as listening:
        yield listening


@pytest.fixture
async def crowd(system: WeirDev, store: PoolStore) -> AsyncIterator[Clients]:
    """Clients; after the test nothing of them is left anywhere."""
    async with clients(system) as made:
        yield made
    await at_rest(store)


async def saturated(crowd: Clients, store: PoolStore, token: str, more: int = 0) -> list[str]:
    """The worker is full of this key's requests, which send tokens; `more` of it wait. Returns
    the ids of those that run."""
    for index in range(SLOTS):
        crowd.ask(token, gateway=index, stream=True)
    await servers.eventually(lambda: crowd.system.running() == SLOTS, what="the worker is full")
    for index in range(more):
        crowd.ask(token, gateway=index)
    await until_waiting(store, more)
    return [each.id for each in store.tickets().values() if each.granted_ms]


async def test_one_sequence_at_a_time_is_waited_for(
    system: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q01: limit 1 and two calls, each at another gateway: both are 200, one after the other. Where
    the wait is over first it is the 429 of the limit, with when to come back."""
    tenant = new_tenant(system, max_sequences=1)
    first = crowd.ask(tenant.key(), stream=True)
    await servers.eventually(lambda: tenant.running() == 1, what="the first runs")
    second = crowd.ask(tenant.key(), gateway=1)
    third = crowd.ask(tenant.key(), gateway=1, headers={"x-weir-max-wait-ms": "200"})
    refused = await third
    assert refused.status == 429
    assert refused.error["type"] == "sequences"
    assert int(refused.headers["retry-after"]) >= 1
    assert 0.2 <= refused.ended - refused.began < 0.2 + LASTS_S
    done, waited = await first, await second
    assert (done.status, waited.status) == (200, 200)
    assert done.queue_ms < 100
    assert waited.queue_ms >= 500
    record = await tenant.record(waited.headers["x-request-id"])
    assert record["queue_ms"] == waited.queue_ms


async def test_interactive_goes_before_batch_that_waits(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q02: a full worker and 50 of batch in the queue; an interactive request that comes last is
    the next to be sent."""
    batch = new_tenant(system, "batch").key()
    await saturated(crowd, store, batch, more=50)
    asked = crowd.ask(tenant.key(), gateway=1)
    answer = await asked
    assert answer.status == 200
    assert [each.band for each in store.sent_before(answer.id)] == []
    assert len(store.waiting()) >= 40


async def test_a_wait_that_is_over_is_told_with_when_to_come_back(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q06: no place in time is a 503 `no_capacity` with `retry-after`, at the deadline or, where it
    is predicted, at once; not a 429, which is the tenant's own limit."""
    await saturated(crowd, store, new_tenant(system).key(), more=6)
    headers = {"x-weir-max-wait-ms": "300"}
    refused = await crowd.ask(tenant.key(), headers=headers)
    assert (refused.status, refused.error["code"]) == (503, "no_capacity")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.ended - refused.began < 0.3 + 1
    rows = "SELECT 1 FROM usage_records WHERE tenant_id = $1"
    assert list(await tenant.sql(rows, tenant.tenant)) == []


async def test_batch_without_a_token_makes_room(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q10: it is aborted in the engine, waits again and is served, not failed; its tenant pays for
    the answer that it got, once, and nothing for what was given up."""
    batch = new_tenant(system, "batch")
    fault = {"kind": "stall", "after_tokens": 0, "count": SLOTS}
    system.worker("/weir/faults", fault)
    token = batch.key()
    asked = [crowd.ask(token, gateway=index) for index in range(SLOTS)]
    await servers.eventually(lambda: system.running() == SLOTS, what="batch fills the worker")
    began = time.monotonic()
    for answer in await asyncio.gather(
        *(crowd.ask(tenant.key(), gateway=index) for index in range(SLOTS))
    ):
        assert answer.status == 200
        assert answer.queue_ms < 1_000
    assert time.monotonic() - began < 1 + 2 * LASTS_S
    replies: list[Answer] = await asyncio.gather(*asked)
    assert [each.status for each in replies] == [200, 200]
    ran = [each for each in system.worker("/weir/ledger")["entries"] if not each["health"]]
    records = [await batch.record(each.headers["x-request-id"]) for each in replies]
    for reply, record in zip(replies, records, strict=True):
        attempts = [each for each in ran if each["rid"].startswith(reply.id)]
        assert record["output_tokens"] == attempts[-1]["completion_tokens"] == LONG
        assert (record["outcome"], record["billable"]) == ("completed", True)
        assert all(not each["completion_tokens"] for each in attempts[:-1])
        assert len(attempts) >= 2, "it was taken back"


async def test_a_full_model_does_not_block_another(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q11: capacity is each model's own."""
    with running_worker("simulated", "--model", "other") as worker:
        await saturated(crowd, store, new_tenant(system).key(), more=8)
        body = {"id": "w-other", "model": "other", "url": worker.url}
        model = {"id": "other", "context_tokens": 2_048, **MODEL}
        assert system.admin("POST", "/admin/v1/models", model).status in (201, 409)
        assert system.admin("POST", "/admin/v1/workers", body).status == 201
        try:
            deadline = time.monotonic() + 10
            while True:
                answer = await crowd.ask(tenant.key(), model="other", max_tokens=4)
                if answer.status == 200:
                    break
                assert time.monotonic() < deadline, answer.raw
                await asyncio.sleep(0.05)
            # The first may have waited for the worker that had just come.
            answer = await crowd.ask(tenant.key(), model="other", max_tokens=4)
            assert (answer.status, answer.queue_ms < 100) == (200, True)
            assert len(store.waiting()) >= 3
        finally:
            assert system.admin("DELETE", "/admin/v1/workers/w-other").status == 204


async def test_tenants_share_over_all_gateways(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q05: one tenant asks at one gateway only, the other at both: they are served alike."""
    other = new_tenant(system)
    await saturated(crowd, store, new_tenant(system).key())
    for index in range(24):
        crowd.ask(other.key(), gateway=index, max_tokens=120, min_tokens=120)
        if index < 16:
            crowd.ask(tenant.key(), gateway=0, max_tokens=120, min_tokens=120)
    await until_waiting(store, 40)
    of_tenant = {each.id: each.tenant for each in store.waiting()}
    await servers.eventually(lambda: len(store.granted) >= 20, within_s=20, what="20 are sent")
    sent = [of_tenant[name] for name in store.granted[:20]]
    assert abs(sent.count(tenant.tenant) - sent.count(other.tenant)) <= 2


async def test_what_does_not_fit_in_memory_waits(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Q28: the engine never holds more than its memory takes, so it never throws out what it
    runs."""
    since = system.worker("/weir/ledger?since=9007199254740991")["next"]
    asked = [crowd.ask(tenant.key(), gateway=index) for index in range(6)]
    replies: list[Answer] = await asyncio.gather(*asked)
    assert [each.status for each in replies] == [200] * 6
    ran = system.worker(f"/weir/ledger?since={since}")["entries"]
    spans = [(each["started_at_ms"], each["ended_at_ms"]) for each in ran if not each["health"]]
    assert len(spans) == 6
    for at_ms, _ in spans:
        assert sum(start <= at_ms < end for start, end in spans) <= SLOTS
    assert system.worker("/v1/loads")["loads"][0]["num_waiting_reqs"] == 0


async def test_both_keys_of_a_tenant_wait_in_one_queue(
    system: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """Two API keys: one tenant's turn, and one tenant's `max_queued`."""
    tenant = new_tenant(system, max_queued=3)
    second = new_key(tenant, "interactive")
    await saturated(crowd, store, tenant.key(), more=2)
    crowd.ask(second, gateway=1)
    await until_waiting(store, 3)
    for token in (second, tenant.key()):
        refused = await crowd.ask(token, gateway=1)
        assert (refused.status, refused.error["type"]) == (429, "queue")
        assert int(refused.headers["retry-after"]) >= 1
    assert {each.tenant for each in store.waiting()} == {tenant.tenant}


async def test_a_key_without_limits_waits_as_its_tenant_may(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """More of them than a tenant's default, and for longer."""
    path = f"/admin/v1/tenants/{tenant.tenant}/limits"
    assert system.admin("PUT", path, {"max_queued": 70, "max_wait_ms": 90_000}).status == 200
    second = new_key(tenant, "interactive")
    await saturated(crowd, store, second, more=65)
    waits = [each.deadline_ms - each.entered_ms for each in store.waiting()]
    assert len(waits) == 65
    assert min(waits) > 80_000


async def test_a_client_that_leaves_while_it_waits_is_gone_at_once(
    system: WeirDev, tenant: WeirDev, crowd: Clients, store: PoolStore
) -> None:
    """INV-11: its ticket goes in a few milliseconds, and nothing of it was admitted."""
    await saturated(crowd, store, new_tenant(system).key(), more=1)
    with tenant.open_chat(gateway=1, max_tokens=LONG, min_tokens=LONG) as connection:
        await until_waiting(store, 2)
        (ticket,) = [each for each in store.waiting() if each.tenant == tenant.tenant]
        connection.close()
        left = time.monotonic()
        await servers.eventually(
            lambda: store.ticket(ticket.id) is None, within_s=2, what="its ticket is gone"
        )
    assert time.monotonic() - left < 0.5
    assert tenant.leases() == 0
    with suppress(AssertionError):
        await tenant.record(ticket.id, within_s=0.3)
        raise RuntimeError("it has a usage record")

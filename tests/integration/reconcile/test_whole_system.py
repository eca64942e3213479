"""A system that nobody has tampered with has no findings, whatever its clients, workers and
gateways did; what is wrong in its stores or its workers is found."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest
import servers
from queue_http_system import at_rest as queue_at_rest
from queue_http_system import clients, new_tenant, queue_system, store_of
from reconciled import at_rest, findings, reconcile, terms
from tenant_examples import a_key, a_tenant
from usage_examples import an_admission
from weir_dev import Json, WeirDev, together, weir_dev

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain.admission import Demand, Granted
from gateway.domain.scopes import scopes_of

pytestmark = pytest.mark.timeout(240)
SLOTS = 2


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways before two simulated workers, and a hosted provider."""
    folder = tmp_path_factory.mktemp("reconciled")
    options = ("--engine", "simulated", "--gateways", "2", "--workers", "2")
    with weir_dev(folder, *options, "--hosted", "simulated") as system:
        yield system


@pytest.fixture
def system(started: WeirDev) -> WeirDev:
    """The same, seen by a tenant that may be served elsewhere."""
    return started.with_new_tenant({"data_policy": "hosted_allowed"})


def ask(system: WeirDev, number: int) -> int:
    """One of many kinds of requests: whole or streamed, several choices, one that leaves."""
    if number % 6 == 5:
        with system.open_chat(stream=bool(number % 4), max_tokens=400, gateway=number) as client:
            client.settimeout(0.3)
            with suppress(TimeoutError):
                client.recv(1_000)
        return 0
    fields: Json = {"stream": bool(number % 2), "n": 1 + number % 3, "max_tokens": 5 + number}
    return system.chat(f"Of rivers, {number}.", gateway=number, **fields).status


def arm(system: WeirDev, kind: str, **fields: int) -> None:
    """Both workers fail so, once."""
    for index in range(2):
        system.worker("/weir/faults", {"kind": kind, **fields}, index=index)


def fail(system: WeirDev) -> None:
    """Every way in which a worker fails, one after the other; the last one drives a request to the
    hosted provider."""
    for kind in ("die_midstream", "reset", "error_event", "drop_usage", "drop_finish"):
        arm(system, kind, after_tokens=3)
        together(2, lambda number: system.chat(stream=bool(number), max_tokens=30).status)
    for kind in ("queue_full", "error_500"):
        arm(system, kind)
        together(2, lambda number: system.chat(stream=bool(number), max_tokens=9).status)
    for index in range(2):
        system.worker("/weir/faults", {"kind": "error_500", "count": 4}, index=index)
    together(2, lambda number: system.chat(stream=bool(number), max_tokens=9).status)


async def test_real_traffic_leaves_nothing_to_find(system: WeirDev) -> None:
    """D15: streams, leaves, failures, several choices, hosted attempts and a gateway killed in the
    middle of it; attempts at the hosted provider are counted, with those of unknown cost."""
    assert set(together(18, lambda number: ask(system, number))) <= {0, 200}
    fail(system)
    await asyncio.to_thread(lose_a_gateway, system)
    await until_it_is_recorded_as_lost(system)
    await at_rest(system)
    (hosted,) = await system.sql(
        "SELECT count(*) AS attempts FROM usage_attempt WHERE provider <> 'self'"
    )
    assert hosted["attempts"] > 0, "nothing went to the hosted provider"
    view = await reconcile(system)
    assert findings(view) == {}
    assert terms(view, "REC-1")["ends"] == terms(view, "REC-1")["rows"] > 30
    assert terms(view, "REC-2")["admitted"] == terms(view, "REC-2")["ended"]
    assert terms(view, "REC-3")["ledger_matched"] > 30
    assert terms(view, "REC-3")["hosted_attempts"] == hosted["attempts"]
    unknown = "SELECT 1 FROM usage_attempt WHERE provider <> 'self' AND provider_cost_pico IS NULL"
    assert terms(view, "REC-3")["hosted_cost_unknown"] == len(await system.sql(unknown))
    assert terms(view, "REC-4")["groups"] > 0
    assert terms(view, "REC-6")["tried_elsewhere"] > 0
    assert terms(view, "REC-7")["replayed"] == terms(view, "REC-1")["ends"]


def lose_a_gateway(system: WeirDev) -> None:
    """Kill the second gateway while it streams. It is started again, and records that as lost."""
    with system.open_chat(stream=True, max_tokens=400, gateway=1) as client:
        client.recv(100)
        pid = system.ready["pids"]["gateways"][1]
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        url = system.gateway(1) + "/readyz"
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.kill(pid, 0)  # until its launcher has noticed
                time.sleep(0.01)
        while True:
            with suppress(OSError):
                if system.request("GET", url).status == 200:
                    return
            assert time.monotonic() < deadline, "the gateway did not come back"
            time.sleep(0.1)


async def until_it_is_recorded_as_lost(system: WeirDev) -> None:
    """The journal of the gateway that was killed is in Postgres."""
    deadline = time.monotonic() + 30
    lost = "SELECT 1 FROM usage_record WHERE outcome = 'gateway_lost' AND final"
    while not await system.sql(lost):
        assert time.monotonic() < deadline, "what it ran has no row"
        await asyncio.sleep(0.1)


async def test_while_it_runs_nothing_is_found(system: WeirDev) -> None:
    """Requests are on their way all the time: that is no discrepancy."""

    async def go_on(number: int) -> None:
        await asyncio.to_thread(ask, system, number)

    stop = asyncio.Event()

    async def crowd(number: int) -> None:
        while not stop.is_set():
            await go_on(number)
            number += 4

    runners = [asyncio.create_task(crowd(number)) for number in range(4)]
    for _ in range(2):
        view = await reconcile(system)
        assert findings(view) == {}
    stop.set()
    await asyncio.gather(*runners)


async def test_rec_3_a_worker_that_tells_a_wrong_usage(system: WeirDev) -> None:
    """The request is named, with the tokens by which it differs."""
    arm(system, "wrong_usage", amount=5)
    reply = system.chat(max_tokens=7)
    await system.record(reply.headers["x-request-id"], within_s=20)
    await at_rest(system)
    deadline = time.monotonic() + 30
    while not (found := findings(await reconcile(system))):  # its gateway says that it has shipped
        assert time.monotonic() < deadline, "the wrong usage was not found"
    assert set(found) == {"REC-3"}
    named = {each["request_id"]: each["size"] for each in found["REC-3"]}
    assert named[reply.headers["x-request-id"]] == 5
    await system.sql(
        "DELETE FROM usage_attempt WHERE request_id = $1::uuid", reply.headers["x-request-id"]
    )


async def test_rec_2_a_lease_that_nobody_admitted(system: WeirDev) -> None:
    """It is held in Redis, and no gateway has its request: named."""
    redis = connect_redis(system.ready["redis_url"], timeout_ms=1_000)
    ledger = RedisLedger(redis, ttl_ms=60_000, timeout_ms=1_000)
    request: UUID = an_admission().request_id
    scopes = scopes_of(a_tenant(), a_key(), "smollm2-135m")
    decision = await ledger.acquire(
        "acme", a_key().id, "smollm2-135m", Demand(request.hex, 1, 112, 112), scopes
    )
    assert isinstance(decision, Granted)
    await ledger.mark_active(["acme"], now_ms=time.time_ns() // 1_000_000)
    found = findings(await reconcile(system))
    assert [(each["request_id"], each["subject"], each["size"]) for each in found["REC-2"]] == [
        (str(request), "acme", 1)
    ]
    await redis.aclose()


async def test_rec_2_an_admission_that_nobody_has(system: WeirDev) -> None:
    """Postgres says that one more was admitted than its gateway knows."""
    await system.sql(
        "UPDATE journal_watermark SET admitted_count = admitted_count + 1,"
        " ended_count = ended_count - 1 WHERE (gateway_id, boot) = ("
        "SELECT gateway_id, boot FROM journal_watermark ORDER BY updated_at DESC LIMIT 1)"
    )
    found = findings(await reconcile(system))
    assert [each["size"] for each in found["REC-2"] if each["request_id"] is None] == [2]


async def test_what_was_taken_back_is_no_finding(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Batch gave its places to interactive requests before its first token, and was served."""
    folder = tmp_path_factory.mktemp("taken_back")
    with queue_system(folder, slots=SLOTS, gateways=2) as system, store_of(system) as store:
        tenant, batch = new_tenant(system).key(), new_tenant(system, "batch").key()
        system.worker("/weir/faults", {"kind": "stall", "after_tokens": 0, "count": SLOTS})
        async with clients(system) as crowd:
            asked = [crowd.ask(batch, gateway=index) for index in range(SLOTS)]
            await servers.eventually(lambda: system.running() == SLOTS, what="batch fills it")
            await asyncio.gather(*(crowd.ask(tenant, gateway=index) for index in range(SLOTS)))
            assert {each.status for each in await asyncio.gather(*asked)} == {200}
        await queue_at_rest(store)
        await at_rest(system)
        view = await reconcile(system)
    assert findings(view) == {}
    assert terms(view, "REC-6")["taken_back"] >= SLOTS

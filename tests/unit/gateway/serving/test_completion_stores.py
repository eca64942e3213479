"""What stands around a request fails: keys, limits, stores, the gateway itself."""

import asyncio

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, data_of, error_of, until
from scripted_engine import HANG
from tenant_examples import COUNTED, a_tenant

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.domain.admission import Settled
from gateway.domain.tenant import Limits

FORMS = pytest.mark.parametrize("stream", [True, False])


async def settled_later(gateway: MemoryGateway) -> None:
    """Let the loops of leases and places run until nothing is left to settle."""
    loops = [asyncio.create_task(part.run()) for part in (gateway.leases, gateway.places)]
    await until(lambda: gateway.leases.unsettled == 0 and gateway.queues.is_at_rest)
    for loop in loops:
        loop.cancel()
    await asyncio.wait(loops)


async def test_a_worker_lost_while_admitting_costs_no_request() -> None:
    """It was journaled, so it is recorded; nothing was sent, so nothing is charged."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(Limits(rpm=1, tpm=1000))
    gateway.journal.on_admitted = lambda: gateway.fleet.failed("w0")
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.attempts, record.billable) == ((), False)
    assert gateway.ledger.states["acme"].scopes["tenant"].window.requests == 0


@pytest.mark.parametrize("effect", [True, False])
async def test_a_store_that_does_not_decide_holds_nothing(effect: bool) -> None:
    """R11, M19: 503; where the lost call took effect after all, it is taken back."""
    gateway = MemoryGateway()
    gateway.ledger.away, gateway.ledger.loses_replies = not effect, effect
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    assert gateway.leases.unsettled == effect
    gateway.ledger.away = gateway.ledger.loses_replies = False
    await settled_later(gateway)
    gateway.assert_nothing_admitted()
    assert [found for *_, found in gateway.ledger.settlements] == [Settled.LIVE] * effect


@FORMS
async def test_a_store_lost_at_the_end_is_settled_later_once(stream: bool) -> None:
    """INV-1: the answer is whole and recorded; the lease is settled when Redis is back."""
    gateway = MemoryGateway(events.answer(["a"]))

    def lose() -> None:
        gateway.ledger.away = True

    gateway.journal.on_ended = lose
    client = await gateway.post(stream=stream)
    assert (client.status, client.finished) == (200, True)
    assert gateway.leases.unsettled == 1
    gateway.ledger.away = False
    await settled_later(gateway)
    gateway.assert_one_of_each(Outcome.COMPLETED)


@pytest.mark.parametrize("when", ["before", "while"])
async def test_what_cannot_be_billed_is_not_served(when: str) -> None:
    """DESIGN 10: 503 metering_unavailable, and lease, tokens and request are given back."""
    gateway = MemoryGateway()
    if when == "before":
        gateway.journal.failing = True
    else:
        gateway.journal.refuses = {"admitted"}
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "metering_unavailable")
    gateway.assert_nothing_admitted()
    book = gateway.ledger.states["acme"].scopes.get("tenant")
    assert book is None or (book.window.tokens, book.window.requests) == (0, 0)


@FORMS
async def test_an_end_that_cannot_be_recorded_is_no_success(stream: bool) -> None:
    """DESIGN 7: the last byte waits for the record; the lease is settled all the same."""
    gateway = MemoryGateway(events.answer(["a"]))
    gateway.journal.refuses = {"ended"}
    client = await gateway.post(stream=stream)
    assert error_of(client)["code"] == "metering_unavailable"
    assert b"[DONE]" not in client.sent
    assert gateway.journal.records == []
    assert [actual for _, actual, *_ in gateway.ledger.settlements] == [6]
    gateway.assert_at_rest()


async def test_a_bug_in_recording_still_frees_the_lease(caplog: pytest.LogCaptureFixture) -> None:
    """INV-1; and the log names the failure without its words."""
    gateway = MemoryGateway(events.answer(["a"]))

    async def broken(record: UsageRecord) -> None:
        raise ValueError("a secret prompt")

    gateway.journal.ended = broken  # type: ignore[method-assign] # the bug
    client = await gateway.post(stream=True)
    assert error_of(client)["code"] == "internal_error"
    gateway.assert_at_rest()
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


@FORMS
async def test_a_shutdown_ends_what_runs_explicitly(stream: bool) -> None:
    """M01: recorded as the gateway's loss, unbilled; the client is told."""
    gateway = MemoryGateway([events.content("a"), HANG])
    client = gateway.a_client(stream=stream)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: client.sent if stream else gateway.engine.streams)
    gateway.live.stop_all()
    assert await gateway.live.wait_empty(1_000)
    await task
    record = gateway.assert_one_of_each(Outcome.GATEWAY_LOST)
    assert (record.output_tokens, record.billable) == (2, False)
    assert error_of(client)["message"] == "the gateway is shutting down"
    assert client.status == (200 if stream else 503)


async def test_what_is_admitted_during_a_shutdown_ends_too() -> None:
    """A request that was still being counted when the others were stopped is not forgotten."""
    gateway = MemoryGateway([HANG])
    gateway.directory.one_tenant = a_tenant(COUNTED)
    gateway.tokenizer.on_count = gateway.live.stop_all
    client = await gateway.post()
    assert client.status == 503
    assert gateway.assert_one_of_each(Outcome.GATEWAY_LOST).attempts == ()


async def test_batch_is_recorded_as_batch() -> None:
    """DESIGN 2.2: a request can go down in class, its record says so."""
    gateway = MemoryGateway(events.answer(["a"]), events.answer(["a"]))
    await gateway.post(service_tier="flex")
    await gateway.serve(gateway.a_client(), headers={b"x-weir-class": b"batch"})
    assert {record.request_class for record in gateway.journal.records} == {"batch"}


async def test_each_request_has_its_own_record() -> None:
    """V24 to V27: ids are ours, never an engine's or a client's."""
    gateway = MemoryGateway(*[events.answer(["a"])] * 3)
    for _ in range(3):
        client = gateway.a_client(stream=True)
        await gateway.serve(client, headers={b"x-request-id": b"mine"})
        assert {e["id"] for e in data_of(client)[:-1]} != {"engine-id"}
    assert len({record.request_id for record in gateway.journal.records}) == 3

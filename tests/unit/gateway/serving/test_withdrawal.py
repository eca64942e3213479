"""A key is revoked or a tenant suspended while requests are under way (B07)."""

import asyncio
from typing import Any

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, data_of, error_of, text_of, until
from msgspec.structs import replace
from one_place import one_place
from scripted_engine import HANG, RecordingConnection
from tenant_examples import a_key, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits
from gateway.serving.withdrawal import NO_GRACE_MS, Withdrawn, withdrawn_in

SUSPENDED = Withdrawn(frozenset({"acme"}), frozenset())
OF_THE_KEY = Withdrawn(frozenset(), frozenset({a_key().id}))
EITHER = pytest.mark.parametrize("withdrawn", [SUSPENDED, OF_THE_KEY])
OTHERS = Withdrawn(frozenset({"another"}), frozenset({"key_of_another"}))
NOW_MS = 1_800_000_000_000


def end(gateway: MemoryGateway, withdrawn: Withdrawn) -> None:
    """As the directory tells it."""
    gateway.places.end_withdrawn(withdrawn)
    gateway.live.end_withdrawn(withdrawn)


@EITHER
async def test_a_stream_ends_with_an_explicit_error(withdrawn: Withdrawn) -> None:
    """B07, after the first byte: an error event, no [DONE], and what was generated is billed."""
    gateway = MemoryGateway()
    gateway.engine.scripts = [
        [events.content("a"), events.content("b"), lambda: end(gateway, withdrawn), HANG]
    ]
    gateway.engine.after_abort = [[events.finish("abort"), events.usage(5, 3)]]
    client = await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (5, 3, True)
    assert gateway.engine.streams[0].aborts == 1
    assert text_of(client) == "ab"
    assert error_of(client)["code"] == "invalid_api_key"
    assert "[DONE]" not in data_of(client)


@EITHER
async def test_before_the_first_byte_it_is_a_401(withdrawn: Withdrawn) -> None:
    """As for a new request; what is not sent is not paid for."""
    gateway = MemoryGateway()
    gateway.engine.scripts = [[lambda: end(gateway, withdrawn), HANG]]
    gateway.engine.after_abort = [[events.finish("abort"), events.usage(5, 0)]]
    client = await gateway.post(stream=True)
    assert gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED).billable is False
    assert (client.status, error_of(client)["code"]) == (401, "invalid_api_key")


async def test_others_go_on() -> None:
    """Another tenant's withdrawal, and another key's, end nothing here."""
    gateway = MemoryGateway()
    gateway.engine.scripts = [
        [lambda: end(gateway, OTHERS), events.content("a"), events.finish(), events.usage(5, 1)]
    ]
    client = await gateway.post(stream=True)
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert data_of(client)[-1] == "[DONE]"


@EITHER
async def test_who_waits_for_a_place_waits_no_more(withdrawn: Withdrawn) -> None:
    """It is told at once and holds nothing, as does what runs; what others wait for goes on."""
    async with one_place([HANG]) as gateway:
        gateway.engine.after_abort = [[events.finish("abort"), events.usage(5, 0)]]
        first = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.engine.streams) == 1)
        second = asyncio.create_task(gateway.post())
        await until(lambda: any(pool.waiting for pool in gateway.queues.pools.values()))
        end(gateway, OTHERS)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [first.done(), second.done()] == [False, False]
        end(gateway, withdrawn)
        for client in (await first, await second):
            assert (client.status, error_of(client)["code"]) == (401, "invalid_api_key")
        assert (len(gateway.journal.admissions), gateway.places.count) == (1, 0)


@EITHER
async def test_who_waits_for_a_worker_waits_no_more(withdrawn: Withdrawn) -> None:
    """While none is there nothing is in a queue yet."""
    async with one_place() as gateway:
        gateway.fleet.unhealthy = {"w0"}
        asking = asyncio.create_task(gateway.post())
        await until(lambda: len(gateway.places._absence) == 1)
        end(gateway, OTHERS)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        end(gateway, withdrawn)
        client = await asking
        assert (client.status, error_of(client)["code"]) == (401, "invalid_api_key")
        assert not gateway.journal.admissions


@pytest.mark.parametrize("moment", ["while its body came", "while admitted"])
@pytest.mark.parametrize("of_key", [True, False])
async def test_what_was_under_way_when_it_was_told_is_not_missed(moment: str, of_key: bool) -> None:
    """It neither waited nor streamed at that instant: it is looked at again before it does."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(Limits(max_sequences=4))

    def withdraw() -> None:
        if of_key:
            gateway.directory.keys = [replace(a_key(), revoked_at_ms=1)]
        else:
            gateway.directory.one_tenant = replace(a_tenant(), suspended=True)

    client = gateway.a_client(stream=True)
    if moment == "while admitted":
        gateway.journal.on_admitted = withdraw
    else:
        client = BodyComes(client, withdraw)
    await gateway.serve(client)
    assert (client.status, error_of(client)["code"]) == (401, "invalid_api_key")
    assert gateway.engine.streams == []
    if moment == "while admitted":
        gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    else:
        gateway.assert_nothing_admitted()


class BodyComes(RecordingConnection):
    """Something happens while it sends its body."""

    def __init__(self, client: RecordingConnection, happens: Any) -> None:
        super().__init__()
        self._client = client
        self._happens = happens

    async def body(self, arrived: Any) -> bytes:
        self._happens()
        return await self._client.body(arrived)


def test_what_counts_as_withdrawn() -> None:
    """Revoked and suspended; a rotated key where it had no grace and has just been rotated; one
    that expires, or whose grace goes on, does not."""
    key, tenant = a_key(), a_tenant()
    revoked = replace(key, id="revoked", revoked_at_ms=1)
    rotated = replace(key, id="rotated", rotated_to="k2", expires_at_ms=NOW_MS)
    graced = replace(rotated, id="graced", expires_at_ms=NOW_MS + NO_GRACE_MS + 1)
    expired = replace(key, id="expired", expires_at_ms=1)
    keys = [key, revoked, rotated, graced, expired]
    tenants = [tenant, replace(tenant, id="suspended", suspended=True)]
    new = withdrawn_in(tenants, keys, now_ms=NOW_MS, is_new=True)
    assert new == Withdrawn(frozenset({"suspended"}), frozenset({"revoked", "rotated"}))
    old = withdrawn_in(tenants, keys, now_ms=NOW_MS, is_new=False)
    assert old.keys == {"revoked"}
    assert withdrawn_in([tenant], [key], now_ms=NOW_MS, is_new=True).is_nothing
    before = {"rotated", "revoked"}
    later = withdrawn_in([], keys, now_ms=NOW_MS, is_new=True, rotated_before=before)
    assert later.keys == {"revoked"}

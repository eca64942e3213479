"""The room that a body has from its arrival until its request is admitted or refused."""

import asyncio

import engine_events as events
from memory_gateway import CHAT, MemoryGateway, error_of, until
from one_place import one_place
from scripted_engine import HANG

from billing.domain.usage_record import Outcome


async def test_a_body_has_room_until_its_request_is_admitted() -> None:
    """What waits for a place holds it, what streams does not: that is bounded by places."""
    async with one_place([HANG], [events.content("a"), events.finish(), events.usage(5, 1)]) as gw:
        gw.engine.after_abort = [[events.finish("abort"), events.usage(5, 0)]]
        clients = [gw.a_client(), gw.a_client()]
        first = asyncio.create_task(gw.serve(clients[0]))
        await until(lambda: len(gw.engine.streams) == 1)
        assert gw.room.held_bytes == 0
        second = asyncio.create_task(gw.serve(clients[1]))
        await until(lambda: any(pool.waiting for pool in gw.queues.pools.values()))
        assert gw.room.held_bytes == gw.room.of_tenant("acme") > len(str(CHAT)) // 2
        clients[1].leave()
        await second
        assert gw.room.held_bytes == 0
        clients[0].leave()
        await first


async def test_a_body_without_room_is_refused_before_anything_is_asked() -> None:
    """In OpenAI's shape, with a time to come back; the next one finds room."""
    gateway = MemoryGateway([events.content("a"), events.finish(), events.usage(5, 1)])
    with gateway.room.body_of("acme") as another:
        another.grow(26 * 1024 * 1024)
        client = await gateway.post(user="x" * 8 * 1024 * 1024)
        assert client.status == 503
        assert client.headers[b"retry-after"] == b"1"
        assert error_of(client)["code"] == "no_capacity"
        assert gateway.journal.admissions == []
    gateway.assert_nothing_admitted()
    await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)


async def test_a_body_that_is_no_request_has_no_room_once_that_is_known() -> None:
    """Whatever the refusal."""
    gateway = MemoryGateway()
    for body in (b"{", {**CHAT, "model": "nobody's"}, {**CHAT, "max_tokens": -1}):
        client = await gateway.serve(gateway.a_client(body))
        assert client.status in (400, 404)
        gateway.assert_nothing_admitted()

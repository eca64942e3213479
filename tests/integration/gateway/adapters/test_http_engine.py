"""Streams over HTTP: what goes out, what never does, and how long it is waited for."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from byte_counter import ANSWER, ByteCounter, chunked, counting_host
from hosted_examples import a_provider
from tenant_examples import a_worker

from gateway.adapters.sglang import HttpEngine, HttpEngineStream
from gateway.domain.hosted import HostedTarget, target_of
from gateway.domain.tenant import Worker
from gateway.errors import HostedSendRefused, WorkerUnreachable
from gateway.serving.ports import EngineRefused

BODY = json.dumps({"messages": "secret prompt"}).encode()


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    """With short deadlines."""
    made = HttpEngine(connect_timeout_ms=2_000, abort_drain_ms=100)
    yield made
    await made.aclose()


@pytest.fixture
async def host() -> AsyncIterator[ByteCounter]:
    """A host that counts bytes."""
    async with counting_host() as counter:
        yield counter


def a_target(url: str, **changes: Any) -> HostedTarget:
    """`m` at a provider there."""
    found = target_of(a_provider(url=url, api_key="provider-key", **changes), "m")
    assert found is not None
    return found


def refuse() -> None:
    """A permission that has ended."""
    raise HostedSendRefused


async def events_of(stream: HttpEngineStream) -> list[bytes]:
    """All of them, within a deadline; the stream is closed."""
    try:
        async with asyncio.timeout(10):
            return [data async for data in stream]
    finally:
        await stream.aclose()


async def test_a_refused_send_sends_no_byte(engine: HttpEngine, host: ByteCounter) -> None:
    """INV-13: connected, then asked once more, then closed."""
    stream = engine.stream(a_target(host.url), "/v1/x", "id", BODY, check_send=refuse)
    with pytest.raises(HostedSendRefused):
        await events_of(stream)
    await until_connected(host, 1)
    assert host.received == b""


async def test_a_connection_from_the_pool_is_asked_too(
    engine: HttpEngine, host: ByteCounter
) -> None:
    """What another tenant's request left open is no way around."""
    target = a_target(host.url)
    await events_of(engine.stream(target, "/v1/x", "id", BODY, check_send=lambda: None))
    received = host.received
    assert host.connections == 1
    with pytest.raises(HostedSendRefused):
        await events_of(engine.stream(target, "/v1/x", "id", BODY, check_send=refuse))
    assert host.received == received
    assert host.connections == 1


async def test_each_stream_has_a_check_of_its_own(engine: HttpEngine, host: ByteCounter) -> None:
    """Side by side one is sent and one is not."""
    target = a_target(host.url)
    sent = engine.stream(target, "/v1/x", "id", BODY, check_send=lambda: None)
    unsent = engine.stream(target, "/v1/x", "id", BODY, check_send=refuse)
    plain = engine.stream(target, "/v1/x", "id", BODY)
    found = await asyncio.gather(
        events_of(sent), events_of(unsent), events_of(plain), return_exceptions=True
    )
    assert isinstance(found[1], HostedSendRefused)
    assert host.requests == 2


@contextmanager
def a_host_that_is_slow_to_accept() -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """Its queue of connections is full: connecting hangs until something is accepted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        yield listener, fillers
        for filler in fillers:
            filler.close()


async def test_a_provider_has_a_connect_time_out_of_its_own(engine: HttpEngine) -> None:
    """The worker's is ten times as long here."""
    with a_host_that_is_slow_to_accept() as (listener, _):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        target = a_target(url, connect_timeout_ms=200)
        with pytest.raises(WorkerUnreachable):
            await events_of(engine.stream(target, "/v1/x", "id", BODY))
        assert time.monotonic() - began < 0.6


async def test_a_permission_that_ends_while_connecting(engine: HttpEngine) -> None:
    """It was allowed when it began to connect. When it could send, it was not."""
    with a_host_that_is_slow_to_accept() as (listener, fillers):
        allowed = True

        def check() -> None:
            if not allowed:
                raise HostedSendRefused

        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        stream = engine.stream(a_target(url), "/v1/x", "id", BODY, check_send=check)
        reading = asyncio.create_task(events_of(stream))
        await asyncio.sleep(0.1)
        assert not reading.done()
        allowed = False
        listener.setblocking(False)
        accepted: list[socket.socket] = []
        deadline = time.monotonic() + 8
        while not reading.done() and time.monotonic() < deadline:
            try:
                accepted.append(listener.accept()[0])
            except BlockingIOError:
                await asyncio.sleep(0.01)
            for filler in fillers:
                filler.close()
        with pytest.raises(HostedSendRefused):
            await reading
        for connection in accepted:
            connection.setblocking(False)
            try:
                assert connection.recv(100) == b""
            except BlockingIOError:
                pass
            finally:
                connection.close()


@pytest.mark.parametrize("hosted", [True, False])
async def test_the_headers_are_a_fixed_set(
    engine: HttpEngine, host: ByteCounter, hosted: bool
) -> None:
    """Ours alone, and the other side's own key."""
    worker: Worker = a_target(host.url) if hosted else a_worker(url=host.url, api_key="worker-key")
    path = "/v1/chat/completions"
    await events_of(engine.stream(worker, path, "id", BODY))
    head, _, body = host.received.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (f.partition(": ") for f in fields)}
    assert line == ("POST /chat/completions" if hosted else "POST " + path) + " HTTP/1.1"
    assert headers == {
        "host": f"127.0.0.1:{host.port}",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "weir",
        "authorization": "Bearer provider-key" if hosted else "Bearer worker-key",
        "content-length": str(len(BODY)),
    }
    assert body == BODY


async def test_the_providers_own_id_is_known(engine: HttpEngine, host: ByteCounter) -> None:
    """B21: to find the request again in the provider's bill."""
    stream = engine.stream(a_target(host.url), "/v1/x", "id", BODY)
    assert stream.provider_request_id is None
    await events_of(stream)
    assert stream.provider_request_id == "req-77"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(
    engine: HttpEngine, host: ByteCounter, status: int
) -> None:
    """Nothing goes to an address that nobody configured."""
    async with counting_host() as elsewhere:
        host.reply = (
            f"HTTP/1.1 {status} Moved\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n"
        ).encode()
        with pytest.raises(EngineRefused):
            await events_of(engine.stream(a_target(host.url), "/v1/x", "id", BODY))
        assert elsewhere.connections == 0


async def test_events_that_come_at_once(engine: HttpEngine, host: ByteCounter) -> None:
    """All of one chunk, `[DONE]` left out."""
    host.reply = ANSWER + chunked(b'{"a":1}', b'{"b":2}', b"[DONE]")
    stream = engine.stream(a_target(host.url), "/v1/x", "id", BODY)
    assert await events_of(stream) == [b'{"a":1}', b'{"b":2}']


async def until_connected(host: ByteCounter, connections: int) -> None:
    """Within a deadline."""
    async with asyncio.timeout(5):
        while host.connections < connections:  # noqa: ASYNC110 - another task counts
            await asyncio.sleep(0.01)

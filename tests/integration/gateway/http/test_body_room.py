"""One tenant's large bodies that never end: others are served, and memory is bounded."""

import asyncio
import json
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from weir_dev import Reply, WeirDev, weir_dev

MIB = 1024 * 1024
ROOM = 64 * MIB
SHARE = (ROOM - ROOM // 8) // 2
"""Of a tenant alone, in large bodies."""
BODY = 7_500_000
CLIENTS = 60
WITHIN_S = 40.0


@pytest.fixture
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """One gateway with little room for bodies, before one worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIR_BODIES_BYTES_MAX", str(ROOM))
        folder = tmp_path_factory.mktemp("bodies")
        with weir_dev(folder, "--engine", "simulated", "--gateways", "1") as started:
            yield started


def shown(system: WeirDev, name: str) -> float:
    """A metric without labels, as it is now."""
    text = system.request("GET", system.gateway() + "/metrics").raw.decode()
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


async def until(happened: Callable[[], bool]) -> None:
    """Within a deadline."""
    deadline = time.monotonic() + WITHIN_S
    while not await asyncio.to_thread(happened):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


class SlowClient:
    """Sends a body but for its last byte, with its length or in chunks, and waits."""

    def __init__(self, system: WeirDev, *, chunked: bool) -> None:
        self._system = system
        self._chunked = chunked
        self.answer: bytes | None = None

    async def run(self) -> None:
        """Until it is answered; what has been answered stays in `answer`."""
        address = urllib.parse.urlsplit(self._system.gateway())
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(self._head())
            for _ in range(BODY // 100_000 - 1):
                piece = b" " * 100_000
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
                await writer.drain()
            self.answer = await reader.read()
        finally:
            writer.close()

    def _head(self) -> bytes:
        length = "Transfer-Encoding: chunked" if self._chunked else f"Content-Length: {BODY}"
        return (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: weir\r\n"
            f"Authorization: Bearer {self._system.key()}\r\n{length}\r\n\r\n"
        ).encode()


def assert_is_openais(answer: bytes) -> None:
    """A 503 `no_capacity`, with a time to come back."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in head + b"\r\n"
    error = json.loads(body)["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "overloaded_error", "no_capacity", None,
    )  # fmt: skip
    assert error["message"]


async def test_large_slow_bodies_of_one_tenant_leave_room_and_memory(system: WeirDev) -> None:
    """S20, S21: sixty times 7.5 MB, held open, by length and in chunks. What is over the tenant's
    share is refused in OpenAI's shape; meanwhile another tenant's bodies, small and larger, are
    served. Once the clients have gone nothing is held."""
    greedy, other = system.with_new_tenant(), system.with_new_tenant()
    before = shown(system, "process_resident_memory_bytes")
    clients = [SlowClient(greedy, chunked=number % 2 == 0) for number in range(CLIENTS)]
    running = [asyncio.create_task(client.run()) for client in clients]
    seen: list[tuple[float, float]] = []

    def looked() -> bool:
        held = shown(system, "weir_body_bytes")
        seen.append((held, shown(system, "process_resident_memory_bytes") - before))
        refused = sum(client.answer is not None for client in clients)
        assert not any(task.done() and task.exception() for task in running)
        return refused >= CLIENTS - SHARE // (BODY - 200_000) - 1 and held > 0

    def served(text: str) -> Reply:
        return other.chat(text, max_tokens=2)

    await until(lambda: looked() and seen[-1][0] > SHARE / 4)
    for text in ("hi", "é" * 20_000, "hi " * 3_000):
        answer = await asyncio.to_thread(served, text)
        assert answer.status != 503, answer.raw
    assert (await asyncio.to_thread(served, "hi")).status == 200
    looked()
    assert 0 < max(held for held, _ in seen) <= SHARE
    assert max(grown for _, grown in seen) < 200 * MIB
    answers = [client.answer for client in clients if client.answer is not None]
    for answered in answers:
        assert_is_openais(answered)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await until(lambda: shown(system, "weir_body_bytes") == 0)
    again = {**greedy.body(max_tokens=2), "messages": [{"role": "user", "content": "hi"}]}
    assert greedy.post(json.dumps(again).encode() + b" " * BODY).status == 200
    assert shown(system, "weir_body_bytes") == 0

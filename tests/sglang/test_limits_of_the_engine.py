"""What an engine has no room for: its queue, its KV pool, its order."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from sglang_server import TIGHT_POOL_TOKENS, TIGHT_QUEUE, Behind, soon
from weir_dev import Reply, WeirDev

OCCUPIED_TOKENS = 450


@pytest.fixture
def occupied(tight: Behind) -> Iterator[ExitStack]:
    """Another tenant's stream holds the one running place until the stack is closed."""
    with ExitStack() as stack:
        other = tight.weir.with_new_tenant()
        connection = stack.enter_context(other.open_chat(max_tokens=OCCUPIED_TOKENS, stream=True))
        received = b""
        while b'"content":"' not in received.partition(b"data: ")[2]:
            received += connection.recv(65536)
        yield stack
    soon(lambda: tight.engine.idle, "an idle engine", within_s=6)


def waiting(behind: Behind, count: int) -> None:
    soon(lambda: behind.engine.load()["waiting"] == count, f"{count} waiting requests")


async def test_a_full_queue_is_an_honest_status(tight: Behind, occupied: ExitStack) -> None:
    """SGLang answers a stream 200 and hides the 503 in its first event."""
    refused = tight.weir.with_new_tenant()
    for place in range(TIGHT_QUEUE):
        occupied.enter_context(tight.weir.open_chat(max_tokens=3, stream=True))
        waiting(tight, place + 1)
    for stream in (False, True):
        reply = refused.chat(max_tokens=3, stream=stream)
        assert reply.status == 503, reply.raw
        assert reply.error["type"] == "overloaded_error"
        assert reply.error["code"] == "no_capacity"
        assert 0 < int(reply.headers["retry-after"]) <= 60
        assert int(reply.headers["retry-after-ms"]) > 0
        assert refused.leases() == 0
        row = await refused.record(reply.headers["x-request-id"])
        assert row["outcome"] == "refused"
        assert row["prompt_tokens"] == row["output_tokens"] == 0
        assert not row["billable"]
    assert tight.weir.leases() == TIGHT_QUEUE
    occupied.close()
    soon(lambda: tight.weir.leases() == 0, "every lease's release", within_s=3)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("beyond", ["prompt", "maximum"])
def test_what_the_pool_cannot_hold_is_refused(tight: Behind, beyond: str, stream: bool) -> None:
    """SGLang would clamp the answer without a word. The context alone would have room."""
    words = 700 if beyond == "prompt" else 1
    maximum = 1 if beyond == "prompt" else TIGHT_POOL_TOKENS
    generated = tight.engine.generated
    reply = tight.weir.chat("river " * words, max_tokens=maximum, stream=stream)
    assert reply.status == 400, reply.raw
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["code"] == "context_length_exceeded"
    assert tight.weir.leases() == 0
    assert tight.engine.generated == generated


def test_what_the_pool_just_holds_is_served_whole(tight: Behind) -> None:
    """The refusal does not come early: the longest prompt has an answer of the length asked for."""
    reply = tight.weir.chat("river " * 500, max_tokens=3, min_tokens=3)
    assert reply.status == 200, reply.raw
    assert reply.json["usage"]["completion_tokens"] == 3
    assert reply.json["usage"]["prompt_tokens"] > 500


def test_interactive_is_served_before_batch(tight: Behind, occupied: ExitStack) -> None:
    """INV-8, the engine's part: batch came first and waits on; who runs is not interrupted."""

    def ask(weir: WeirDev, tier: str) -> tuple[Reply, float]:
        reply = weir.chat(max_tokens=3, service_tier=tier)
        return reply, time.monotonic()

    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(ask, tight.weir, "flex")
        waiting(tight, 1)
        interactive = pool.submit(ask, tight.weir.with_new_tenant(), "default")
        waiting(tight, 2)
        occupied.close()
        (first, first_at), (second, second_at) = interactive.result(), batch.result()
    assert (first.status, second.status) == (200, 200)
    assert first_at < second_at

"""What an engine has no room for: its queue, its KV pool, its order."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from sglang_server import CHAT, MODEL, TIGHT_POOL_TOKENS, TIGHT_QUEUE, Behind, soon
from weir_dev import Reply, WeirDev

from gateway.domain.engine_facts import engine_priority
from gateway.domain.tenant import RequestClass

OCCUPIED_TOKENS = 450
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
def occupied(tight: Behind) -> Iterator[ExitStack]:
    """A stream of somebody else's, which no gateway knows of, holds the one running place until the
    stack is closed."""
    with ExitStack() as stack:
        other = stack.enter_context(
            tight.engine.streaming(max_tokens=OCCUPIED_TOKENS, ignore_eos=True, priority=1)
        )
        answer = other.getresponse()
        while b'"content":"' not in answer.readline():
            pass
        yield stack
    soon(lambda: tight.engine.idle, "an idle engine", within_s=6)


def waiting(behind: Behind, count: int) -> None:
    soon(lambda: behind.engine.load()["waiting"] == count, f"{count} waiting requests")


async def test_a_full_queue_is_an_honest_status(tight: Behind, occupied: ExitStack) -> None:
    """SGLang answers a stream 200 and hides the 503 in its first event."""
    refused = tight.weir.with_new_tenant()
    for place in range(TIGHT_QUEUE):
        occupied.enter_context(tight.engine.streaming(max_tokens=3, priority=1))
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


def test_the_engine_serves_interactive_before_batch(tight: Behind, occupied: ExitStack) -> None:
    """Q03, INV-8, the second line: of what waits inside it, whatever order it says it has."""
    facts = tight.engine.facts
    assert facts.priority_order is not None

    def ask(request_class: RequestClass) -> float:
        body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 3}
        tight.engine.post(CHAT, {**body, "priority": engine_priority(request_class, facts)})
        return time.monotonic()

    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(ask, RequestClass.BATCH)
        waiting(tight, 1)
        interactive = pool.submit(ask, RequestClass.INTERACTIVE)
        waiting(tight, 2)
        occupied.close()
        assert interactive.result() < batch.result()


def test_batch_that_waits_inside_the_engine_is_taken_back(
    tight: Behind, occupied: ExitStack
) -> None:
    """Q10, the first line: it has its gateway's only place and no token; interactive has the place,
    and batch is served after it, in one row that is billed once."""

    def ask(weir: WeirDev, tier: str) -> tuple[Reply, float]:
        reply = weir.chat(max_tokens=3, service_tier=tier)
        return reply, time.monotonic()

    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(ask, tight.weir, "flex")
        waiting(tight, 1)
        interactive = pool.submit(ask, tight.weir.with_new_tenant(), "default")
        soon(lambda: taken_back(tight) == 1, "a place that was taken back", within_s=10)
        occupied.close()
        (first, first_at), (second, second_at) = interactive.result(), batch.result()
    assert (first.status, second.status) == (200, 200)
    assert first_at < second_at


def taken_back(behind: Behind) -> float:
    reply = behind.weir.request("GET", behind.weir.gateway(0) + "/metrics")
    name = 'weir_queue_taken_back_total{result="given_back"} '
    lines = reply.raw.decode().splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

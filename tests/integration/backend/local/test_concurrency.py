"""Requests side by side, leaving, and long prompts, on the real model."""

import asyncio
import time

import sglang_captures as captured
from worker_process import Json, WorkerClient


async def test_two_prompts_at_once(worker: WorkerClient) -> None:
    """Prompts that arrive together are both answered (in one step the engine would break)."""
    answers = await asyncio.gather(
        *[worker.chat(f"Name river number {number}.", max_tokens=6) for number in range(2)]
    )
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [6, 6]


async def test_fifty_at_once(worker: WorkerClient) -> None:
    """Fifty at once are all answered, no more at a time than there are places, and each is in
    the ledger with the counts that its client got."""
    since = await worker.ledger_end()

    async def one(number: int) -> tuple[str, int, int]:
        body: Json = {"prompt": f"River {number}", "max_tokens": 3, "temperature": 0}
        streamed = await worker.stream("/v1/completions", {**body, "rid": f"fifty-{number:02}"})
        assert streamed.finish_reason == "length"
        assert streamed.usage is not None
        usage = streamed.usage
        return streamed.events[0]["id"], usage["prompt_tokens"], usage["completion_tokens"]

    answers = await asyncio.gather(*[one(number) for number in range(50)])
    entries = await worker.ledger(since)
    told = sorted((e["rid"], e["prompt_tokens"], e["completion_tokens"]) for e in entries)
    assert sorted(answers) == told
    assert 2 <= max(entry["running_at_start"] for entry in entries) <= 8
    assert {entry["cached_tokens"] for entry in entries} == {None}


async def test_client_leaves_a_stream(worker: WorkerClient) -> None:
    """A dropped stream leaves the engine idle within a decode step, counted as it was."""
    streamed = await worker.chat_stream(
        "Write a long story.", max_tokens=400, rid="leave-1", chunks_max=7
    )
    # A step takes some 20 ms alone, more on busy cores.
    assert await worker.eventually_load(num_running_reqs=0) < 1
    entry = await worker.ledger_of("leave-1")
    assert entry["finish_reason"] == "abort"
    assert len(streamed.events) - 1 <= entry["completion_tokens"] <= len(streamed.events) + 20


async def test_client_leaves_without_stream(worker: WorkerClient) -> None:
    """So does a dropped request without a stream."""
    running = asyncio.create_task(worker.chat("Write a long story.", max_tokens=400, rid="leave-2"))
    await worker.eventually_load(num_running_reqs=1)
    await progressed(worker)
    running.cancel()
    assert await worker.eventually_load(num_running_reqs=0) < 1
    entry = await worker.ledger_of("leave-2")
    assert (entry["finish_reason"], entry["completion_tokens"] > 0) == ("abort", True)


async def test_abort(worker: WorkerClient) -> None:
    """An aborted stream ends with its true count: what it streamed, and what the ledger says."""
    running = asyncio.create_task(
        worker.chat_stream("Write a long story.", max_tokens=400, rid="abort-1-")
    )
    await progressed(worker)
    began = time.monotonic()
    await worker.abort(rid="abort-1-")
    streamed = await running
    assert time.monotonic() - began < 1
    assert (streamed.finish_reason, streamed.done) == ("abort", True)
    assert streamed.usage is not None
    status, counted = await worker.post("/v1/tokenize", {"prompt": streamed.text})
    assert status == 200
    assert f'"count":{streamed.usage["completion_tokens"]},' in counted
    entry = await worker.ledger_of("abort-1-")
    assert entry["completion_tokens"] == streamed.usage["completion_tokens"]


async def test_long_prompt(worker: WorkerClient) -> None:
    """While a long prompt is computed, the worker answers, counts and queues; aborted there, the
    stream ends at once and the engine is free when the step is over."""
    prompt: Json = {"prompt": "The cat sat on the mat. " * 40, "temperature": 0}
    long = asyncio.create_task(
        worker.stream("/v1/completions", {**prompt, "max_tokens": 5, "rid": "long-1-"})
    )
    await worker.eventually_load(num_running_reqs=1)
    queued = asyncio.create_task(worker.chat_stream("Hi", max_tokens=5, rid="queued-1-"))
    await worker.eventually_load(num_running_reqs=1, num_waiting_reqs=1)
    began = time.monotonic()
    assert (await worker.post("/v1/tokenize", prompt))[0] == 200
    assert time.monotonic() - began < 1
    await worker.abort(rid="queued-1-")
    ended = await queued
    assert ended.finish_reason == "abort"
    assert ended.usage == captured.QUEUED_ABORT_USAGE
    began = time.monotonic()
    await worker.abort(rid="long-1-")
    aborted = await long
    assert time.monotonic() - began < 1
    assert aborted.finish_reason == "abort"
    assert aborted.usage is not None
    assert aborted.usage["prompt_tokens"] == 281
    assert aborted.usage["completion_tokens"] == 0
    # The engine computes to the end of the step and says so.
    assert (await worker.load())["num_running_reqs"] == 1
    await worker.eventually_load(within_s=60, num_running_reqs=0)
    assert (await worker.chat(max_tokens=2))["usage"]["completion_tokens"] == 2


async def progressed(worker: WorkerClient) -> None:
    """Wait until the one running sequence has generated some tokens."""
    began = await worker.load()
    while True:
        load = await worker.load()
        if load["num_running_reqs"] == 1 and load["gen_throughput"] > began["gen_throughput"]:
            return
        await asyncio.sleep(0.01)

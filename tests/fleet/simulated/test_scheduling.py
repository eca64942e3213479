"""How the simulated worker queues, batches, caches and lets go."""

import asyncio
import time

import sglang_captures as captured
from worker_process import WorkerClient, WorkerProcess, chat_body, connected


async def test_queue_full(narrow: WorkerClient) -> None:
    """A full queue is 503 without a stream, and an error event after 200 in one."""
    running = [
        asyncio.create_task(narrow.chat_stream(max_tokens=2000, rid=f"full-{i}-")) for i in range(2)
    ]
    await narrow.eventually_load(num_running_reqs=2)
    running += [
        asyncio.create_task(narrow.chat_stream(max_tokens=2000, rid=f"full-{i}-"))
        for i in range(2, 5)
    ]
    await narrow.eventually_load(num_running_reqs=2, num_waiting_reqs=3)
    refused = await narrow.post("/v1/chat/completions", chat_body("x"))
    assert refused == (503, captured.QUEUE_FULL)
    streamed = await narrow.chat_stream()
    assert streamed.status == 200
    assert streamed.events[0] == captured.QUEUE_FULL_EVENT
    assert streamed.events[1]["usage"] == captured.QUEUED_ABORT_USAGE
    assert streamed.done
    await narrow.abort(abort_all=True)
    usages = [(await each).usage for each in running]
    # Those in the queue had cost nothing; those running are counted.
    assert usages[2:] == [captured.QUEUED_ABORT_USAGE] * 3
    assert all(usage is not None and usage["prompt_tokens"] > 0 for usage in usages[:2])
    queued = await narrow.ledger_of("full-4-")
    assert (queued["prompt_tokens"], queued["started_at_ms"]) == (0, None)


async def test_running_limit(narrow: WorkerClient) -> None:
    """No more run than there are places, in the ledger too."""
    since = await narrow.ledger_end()
    first = [asyncio.create_task(narrow.chat(max_tokens=100)) for _ in range(2)]
    # The queue's limit counts arrivals: the places behind it are free once these two run.
    await narrow.eventually_load(num_running_reqs=2)
    await asyncio.gather(*first, *[narrow.chat(max_tokens=5) for _ in range(2)])
    entries = await narrow.ledger(since)
    assert len(entries) == 4
    assert max(entry["running_at_start"] for entry in entries) == 2
    assert (await narrow.get("/weir/ledger"))["running_peak"] == 2


async def test_cache_and_salt(worker: WorkerClient) -> None:
    """A repeated prompt is cached but for its last token, and never across salts."""
    question = "A long and well known question about prefixes and their reuse, first asked here"

    async def cached(salt: str) -> tuple[int, int]:
        usage = (await worker.chat(question, cache_salt=salt))["usage"]
        return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]

    assert (await cached("a"))[0] == 0
    again, prompt = await cached("a")
    assert again == prompt - 1
    assert (await cached("b"))[0] == 0
    status, text = await worker.post("/flush_cache", {})
    assert (status, text.splitlines()[0]) == (200, "Cache flushed.")
    assert (await cached("a"))[0] == 0


async def test_flush_while_running(worker: WorkerClient) -> None:
    """The cache cannot be flushed while anything runs."""
    running = asyncio.create_task(worker.chat_stream(max_tokens=2000, rid="flush-"))
    await worker.eventually_load(num_running_reqs=1)
    assert await worker.post("/flush_cache", {}) == (400, "Flush cache failed.\n")
    await worker.abort(rid="flush-")
    await running


async def test_client_leaves_a_stream(worker: WorkerClient) -> None:
    """A dropped stream stops within a step."""
    await worker.chat_stream(max_tokens=2000, rid="leave-1", chunks_max=5)
    assert await worker.eventually_load(num_running_reqs=0) < 0.5
    entry = await worker.ledger_of("leave-1")
    assert entry["finish_reason"] == "abort"
    assert 4 <= entry["completion_tokens"] < 40


async def test_client_leaves_without_stream(worker: WorkerClient) -> None:
    """Without a stream the leave is noticed at SGLang's poll, every 4 s since the request came."""
    began = time.monotonic()
    running = asyncio.create_task(worker.chat(max_tokens=2000, rid="leave-2"))
    await worker.eventually_load(num_running_reqs=1)
    running.cancel()
    await worker.eventually_load(num_running_reqs=0, within_s=12)
    assert time.monotonic() - began > 3.5
    assert (await worker.ledger_of("leave-2"))["finish_reason"] == "abort"


async def test_answers_are_deterministic(worker: WorkerClient) -> None:
    """The same prompt and seed give the same text, another seed or prompt another."""

    async def text(question: str, **fields: object) -> str:
        answer = await worker.chat(question, temperature=1, **fields)
        content: str = answer["choices"][0]["message"]["content"]
        return content

    first = await text("one", seed=1)
    assert first == await text("one", seed=1)
    assert first != await text("one", seed=2)
    assert first != await text("two", seed=1)


async def test_stop_string(worker: WorkerClient) -> None:
    """Text ends before a stop string, which is named; the token that completed it counts."""
    whole = (await worker.chat("stop here", max_tokens=8))["choices"][0]["message"]["content"]
    third, fourth = whole.split(" ")[2:4]
    answer = await worker.chat("stop here", stop=[f"{third} {fourth[:2]}", "never"])
    choice = answer["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(f"{third} {fourth}")]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", f"{third} {fourth[:2]}")
    assert answer["usage"]["completion_tokens"] == 4


async def test_two_thousand_streams(simulated_process: WorkerProcess) -> None:
    """Two thousand streams at once all end whole, each with its own count in the ledger."""
    async with connected(simulated_process) as worker:
        since = await worker.ledger_end()
        await worker.session.delete("/weir/faults")
        streams = await asyncio.gather(
            *[worker.chat_stream(f"stream {i}", max_tokens=4) for i in range(2000)]
        )
        assert {streamed.finish_reason for streamed in streams} == {"length"}
        assert all(streamed.done and streamed.complete for streamed in streams)
        entries = await worker.ledger(since)
        assert len(entries) == 2000
        assert sum(entry["completion_tokens"] for entry in entries) == 8000

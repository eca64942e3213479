"""Failures on command."""

import asyncio
import json
import signal

import pytest
from worker_process import WorkerClient, chat_body, connected, running_worker


async def arm(worker: WorkerClient, **fault: object) -> None:
    """Arm one fault."""
    status, answer = await worker.post("/weir/faults", fault)
    assert status == 200, answer


async def test_die_midstream(worker: WorkerClient) -> None:
    """The connection is cut after some tokens, without an end; the engine stops."""
    await arm(worker, kind="die_midstream", after_tokens=3)
    streamed = await worker.chat_stream(max_tokens=100, rid="cut-1")
    assert not streamed.complete
    assert not streamed.done
    assert streamed.finish_reason is None
    assert len(streamed.text.split()) >= 3
    await worker.eventually_load(num_running_reqs=0)
    assert (await worker.ledger_of("cut-1"))["finish_reason"] == "abort"


async def test_stall(worker: WorkerClient) -> None:
    """A stalled request holds its place and says nothing more until it is aborted."""
    await arm(worker, kind="stall", after_tokens=2)
    running = asyncio.create_task(worker.chat_stream(max_tokens=100, rid="stall-1-"))
    await worker.eventually_load(num_running_reqs=1)
    # Another one runs past it meanwhile.
    assert (await worker.chat(max_tokens=20))["usage"]["completion_tokens"] == 20
    assert (await worker.load())["num_running_reqs"] == 1
    await worker.abort(rid="stall-1-")
    usage = (await running).usage
    assert usage is not None
    assert usage["completion_tokens"] == 2


async def test_slow(worker: WorkerClient) -> None:
    """A slow request's tokens come late, the first too, nobody else's."""
    await arm(worker, kind="slow", after_tokens=0, delay_ms=100)
    running = asyncio.create_task(worker.chat(max_tokens=3, rid="slow-1"))
    await worker.eventually_load(num_running_reqs=1)
    await worker.chat(max_tokens=3)
    assert not running.done()
    assert (await running)["usage"]["completion_tokens"] == 3
    entry = await worker.ledger_of("slow-1")
    assert entry["ended_at_ms"] - entry["started_at_ms"] >= 300


async def test_error_500(worker: WorkerClient) -> None:
    """As many requests as asked get a 500, then it is over."""
    await arm(worker, kind="error_500", count=2)
    since = await worker.ledger_end()
    for stream in (False, True):
        status, answer = await worker.post("/v1/chat/completions", chat_body("x", stream=stream))
        assert (status, json.loads(answer)["code"]) == (500, 500)
    assert await worker.ledger(since) == []
    assert (await worker.chat())["usage"]["completion_tokens"] == 8


async def test_error_event(worker: WorkerClient) -> None:
    """A 200 stream carries an error event, after some tokens or first of all."""
    await arm(worker, kind="error_event")
    await arm(worker, kind="error_event", after_tokens=2)
    first = await worker.chat_stream()
    assert first.status == 200
    assert first.events[0]["error"]["code"] == 500
    later = await worker.chat_stream()
    assert later.events[-2]["error"]["code"] == 500
    assert len(later.text.split()) >= 2
    assert later.finish_reason is None


async def test_drop_usage(worker: WorkerClient) -> None:
    """The stream is whole but for its usage; the ledger knows it."""
    await arm(worker, kind="drop_usage")
    streamed = await worker.chat_stream(rid="unmetered")
    assert (streamed.usage, streamed.finish_reason, streamed.done) == (None, "length", True)
    assert (await worker.ledger_of("unmetered"))["completion_tokens"] == 8


async def test_drop_finish(worker: WorkerClient) -> None:
    """The stream ends in good order but without a finish reason."""
    await arm(worker, kind="drop_finish", after_tokens=2)
    streamed = await worker.chat_stream(max_tokens=100)
    assert (streamed.finish_reason, streamed.done, streamed.complete) == (None, True, True)


async def test_queue_full(worker: WorkerClient) -> None:
    """A full queue can be played without filling one."""
    await arm(worker, kind="queue_full", count=2)
    assert (await worker.post("/v1/chat/completions", chat_body("x")))[0] == 503
    assert (await worker.chat_stream()).events[0]["error"]["code"] == 503


async def test_arming(worker: WorkerClient) -> None:
    """Faults choose by rid, last as long as asked, are shown and cleared; others are refused."""
    await arm(worker, kind="error_500", rid_prefix="only-", count=None)
    for _ in range(2):
        status, _answer = await worker.post("/v1/chat/completions", chat_body("x", rid="only-1"))
        assert status == 500
    assert (await worker.chat(rid="another"))["id"] == "another"
    async with worker.session.get("/weir/faults") as response:
        assert [fault["kind"] for fault in await response.json()] == ["error_500"]
    async with worker.session.delete("/weir/faults") as response:
        assert await response.json() == []
    assert (await worker.chat(rid="only-1"))["id"] == "only-1"
    for wrong in ({"kind": "explode"}, {"kind": "stall", "sometimes": 1}, {}):
        assert (await worker.post("/weir/faults", wrong))[0] == 400


async def test_wrong_usage(worker: WorkerClient) -> None:
    """The closing usage is off; the ledger is not."""
    await arm(worker, kind="wrong_usage", amount=5, count=2)
    streamed = await worker.chat_stream(rid="inflated")
    assert streamed.usage is not None
    assert streamed.usage["completion_tokens"] == 13
    assert (await worker.chat())["usage"]["completion_tokens"] == 13
    assert (await worker.ledger_of("inflated"))["completion_tokens"] == 8


async def test_reset(worker: WorkerClient) -> None:
    """The connection ends in a reset, not in an end of file."""
    await arm(worker, kind="reset", after_tokens=2)
    body = json.dumps(chat_body("x", stream=True, max_tokens=100)).encode()
    reader, writer = await asyncio.open_connection(worker.url.host, worker.url.port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n")
    writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await worker.eventually_load(num_running_reqs=0)


async def test_stale_load(worker: WorkerClient) -> None:
    """The load stands still for a while, whatever happens, and then does not."""
    await arm(worker, kind="stale_load", delay_ms=1500)
    before = await worker.load()
    assert before["num_running_reqs"] == 0
    running = asyncio.create_task(worker.chat_stream(max_tokens=2000, rid="unseen-"))
    await worker.eventually_metric("sglang:num_running_reqs", 1.0)
    assert await worker.load() == before
    await worker.eventually_load(num_running_reqs=1)
    await worker.abort(rid="unseen-")
    await running


async def test_the_whole_replica_is_slow(worker: WorkerClient) -> None:
    """Every step of everybody takes so many times as long, until it is cleared."""
    await arm(worker, kind="slow", scope="replica", factor=10)
    await worker.chat(max_tokens=5, rid="slowed")
    entry = await worker.ledger_of("slowed")
    assert entry["ended_at_ms"] - entry["first_token_ms"] >= 4 * 10 * 11
    await worker.session.delete("/weir/faults")
    await worker.chat(max_tokens=5, rid="not-slowed")
    entry = await worker.ledger_of("not-slowed")
    assert entry["ended_at_ms"] - entry["first_token_ms"] < 3 * 4 * 11 + 200


async def test_the_whole_replica_stalls(worker: WorkerClient) -> None:
    """No step ends until it is cleared; then everything goes on, nothing lost."""
    await arm(worker, kind="stall", scope="replica")
    running = [asyncio.create_task(worker.chat(max_tokens=5)) for _ in range(3)]
    done, _ = await asyncio.wait(running, timeout=0.5)
    assert not done
    await worker.session.delete("/weir/faults")
    answers = await asyncio.gather(*running)
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [5, 5, 5]
    status, _ = await worker.post("/weir/faults", {"kind": "die", "scope": "replica"})
    assert status == 400


@pytest.mark.fault
async def test_die() -> None:
    """The whole worker dies in the middle of a stream."""
    with running_worker("simulated") as process:
        async with connected(process) as worker:
            await arm(worker, kind="die", after_tokens=2)
            streamed = await worker.chat_stream(max_tokens=100)
            assert not streamed.complete
        assert process.process.wait(timeout=10) == -signal.SIGKILL

"""A worker as a process: what it prints, how it stops."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.parse

import aiohttp
import pytest
from worker_process import (
    WorkerClient,
    WorkerProcess,
    chat_body,
    connected,
    ended,
    running_worker,
    served_urls,
    start_worker,
)

from backend.embedded.ports import free_port


async def test_says_that_it_is_simulated() -> None:
    """One line says where it serves, and that it is simulated, once it serves."""
    with running_worker("simulated", "--model", "tiny") as worker:
        assert worker.line == f"simulated worker serves tiny at {worker.url}\n"
        async with connected(worker) as client, client.session.get("/metrics") as response:
            text = await response.text()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) > 10
    of_the_process = [line for line in samples if line.startswith("process_")]
    assert all('weir_engine="simulated"' in line for line in samples if line not in of_the_process)


async def test_sigterm_lets_streams_end() -> None:
    """After SIGTERM a running stream ends whole, and the exit status is 0."""
    with running_worker("simulated") as worker:
        async with connected(worker) as client:
            running = asyncio.create_task(client.chat_stream(max_tokens=40))
            await client.eventually_load(num_running_reqs=1)
            worker.process.send_signal(signal.SIGTERM)
            streamed = await running
        assert (streamed.finish_reason, streamed.done) == ("length", True)
        assert await asyncio.to_thread(worker.process.wait, 10) == 0


async def test_a_draining_worker_still_answers() -> None:
    """After SIGTERM, while something runs, /health is 503 and new requests are served, as SGLang
    does."""
    with running_worker("simulated") as worker:
        async with connected(worker) as client:
            running = asyncio.create_task(client.chat_stream(max_tokens=200, ignore_eos=True))
            await client.eventually_load(num_running_reqs=1)
            worker.process.send_signal(signal.SIGTERM)
            while True:
                async with client.session.get("/health") as response:
                    if response.status == 503:
                        break
            assert (await client.chat(max_tokens=3))["usage"]["completion_tokens"] == 3
            assert not running.done()
            assert (await running).finish_reason == "length"
        assert await asyncio.to_thread(worker.process.wait, 10) == 0


async def test_health_generates() -> None:
    """/health takes a second and one token of its own where nothing runs, and only the second where
    something does; no total counts it."""
    with running_worker("simulated") as worker:
        async with connected(worker) as client:
            for path in ("/health", "/health_generate"):
                began = time.monotonic()
                async with client.session.get(path) as response:
                    assert (response.status, await response.read()) == (200, b"")
                assert 0.9 < time.monotonic() - began < 3
            running = asyncio.create_task(client.chat_stream(max_tokens=2000, rid="busy-"))
            await client.eventually_load(num_running_reqs=1)
            async with client.session.get("/health") as response:
                assert response.status == 200
            await client.abort(rid="busy-")
            await running
            entries = await client.ledger(0)
            assert [entry["health"] for entry in entries] == [True, True, False]
            assert all(entry["rid"].startswith("HEALTH_CHECK") for entry in entries[:2])
            assert await client.metric("sglang:num_requests_total") == 1


async def test_start_up() -> None:
    """Until it has started a worker answers 503 and says so; a fast clock shortens that."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    arguments = ("simulated", "--start-up", "100000", "--speed", "50")
    with ended(start_worker(*arguments, port=port)) as process:
        async with connected(WorkerProcess(url, process, "")) as client:
            seen: list[int] = []
            while 200 not in seen[-1:]:
                with contextlib.suppress(aiohttp.ClientConnectorError):
                    async with client.session.get("/ready") as ready:
                        seen.append(ready.status)
                    if seen == [503]:
                        async with client.session.get("/health") as health:
                            assert health.status == 503
                        assert (await client.get("/server_info"))["status"] == "starting"
                await asyncio.sleep(0.02)
            assert set(seen) == {503, 200}
            assert (await client.chat(max_tokens=3))["usage"]["completion_tokens"] == 3
            assert (await client.get("/server_info"))["weir_clock_speed"] == 50


async def test_replicas_share_nothing_but_the_process() -> None:
    """Each has its address, line, ledger, cache, faults and ids."""
    with running_worker("simulated", "--model", "m", "--replicas", "2") as worker:
        urls = served_urls(worker, 2)
        assert len(set(urls)) == 2
        first, second = (WorkerProcess(url, worker.process, worker.line) for url in urls)
        async with connected(first) as one, connected(second) as other:
            await one.post("/weir/faults", {"kind": "error_500"})
            text = "The same long question, asked of both"
            held = asyncio.create_task(other.chat(text, max_tokens=100, rid="same"))
            await other.eventually_load(num_running_reqs=1)
            status, _ = await one.post("/v1/chat/completions", chat_body(text, rid="same"))
            assert status == 500
            answer = await one.chat(text, max_tokens=100, rid="same")
            assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
            assert answer["choices"] == (await held)["choices"]
            for client in (one, other):
                assert len(await client.ledger(0)) == 1


async def health_status(client: WorkerClient) -> int:
    """What /health answers."""
    async with client.session.get("/health") as response:
        return response.status


@pytest.mark.parametrize("signals", [1, 2])
async def test_an_end_that_waits_no_longer(signals: int) -> None:
    """What goes on beyond the grace time, or when a second signal comes, is aborted; the exit
    status is 0, and nothing is said of it."""
    grace_ms = "1000" if signals == 1 else "60000"
    with running_worker("simulated", "--grace-ms", grace_ms) as worker:
        async with connected(worker) as client:
            running = asyncio.create_task(client.chat_stream(max_tokens=8000, ignore_eos=True))
            asked = asyncio.create_task(health_status(client))
            await client.eventually_load(num_running_reqs=1)
            worker.process.send_signal(signal.SIGTERM)
            if signals == 2:
                while await health_status(client) != 503:
                    pass
                worker.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.process.wait, 10) == 0
            streamed = await running
            await asyncio.gather(asked, return_exceptions=True)
        assert streamed.finish_reason in {None, "abort"}
        assert worker.process.stderr is not None
        assert worker.process.stderr.read() == ""


async def test_a_cut_answer_is_no_complaint() -> None:
    """A fault that was asked for is not in the log, where only surprises are looked for."""
    with running_worker("simulated") as worker:
        async with connected(worker) as client:
            for kind in ("die_midstream", "reset"):
                await client.post("/weir/faults", {"kind": kind, "after_tokens": 3})
                streamed = await client.chat_stream(max_tokens=20)
                assert not streamed.complete
                await client.post("/weir/faults", {"kind": kind, "after_tokens": 3})
                with pytest.raises(aiohttp.ClientPayloadError):
                    await client.post("/v1/chat/completions", chat_body("whole"))
        worker.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.process.wait, 10) == 0
        assert worker.process.stderr is not None
        assert worker.process.stderr.read() == ""


def test_port_in_use() -> None:
    """A port that is taken is one line and exit status 1."""
    with running_worker("simulated") as worker:
        port = str(urllib.parse.urlparse(worker.url).port)
        command = [sys.executable, "-m", "gateway", "backend", "simulated", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"weir: cannot listen on 127.0.0.1:{port}")
    assert done.stderr.count("\n") == 1


async def test_prompts_stay_out_of_the_logs() -> None:
    """Nothing that a request says is printed, whatever is wrong with it."""
    bodies = [
        json.dumps(chat_body("confidential")).encode(),
        b'{"messages":"confidential"}',
        b"confidential",
        b'{"messages":[{"role":"user","content":"confidential"}],"regex":"confidential"}',
    ]
    with running_worker("simulated") as worker:
        async with connected(worker) as client:
            for body in bodies:
                await client.post("/v1/chat/completions", body)
        worker.process.send_signal(signal.SIGTERM)
        out, err = await asyncio.to_thread(worker.process.communicate, None, 10)
    assert "confidential" not in out + err

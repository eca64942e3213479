"""A worker as a process: what it prints, how it stops."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.parse

from worker_process import chat_body, connected, running_worker


async def test_says_that_it_is_simulated() -> None:
    """One line says where it serves, and that it is simulated, once it serves."""
    with running_worker("simulated", "--model", "tiny") as worker:
        assert worker.line == f"simulated worker serves tiny at {worker.url}\n"
        async with connected(worker) as client, client.session.get("/metrics") as response:
            text = await response.text()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) > 10
    assert all('weir_engine="simulated"' in line for line in samples)


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


async def test_grace_time_ends() -> None:
    """A stream that goes on beyond the grace time is cut, and the exit status is still 0."""
    with running_worker("simulated", "--grace-ms", "1000") as worker:
        async with connected(worker) as client:
            running = asyncio.create_task(client.chat_stream(max_tokens=8000, ignore_eos=True))
            await client.eventually_load(num_running_reqs=1)
            worker.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.process.wait, 10) == 0
            streamed = await running
        assert streamed.finish_reason in {None, "abort"}


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

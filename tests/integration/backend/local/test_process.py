"""A local worker as a process: how it starts and stops."""

import asyncio
import signal
import time

from worker_process import Json, connected, running_worker, start_worker


async def test_stops_in_a_prompt_step() -> None:
    """SIGTERM ends it with status 0 after the grace time, also in a prompt step that cannot be
    interrupted."""
    with running_worker("local", "--model", "laptop", "--grace-ms", "1000") as worker:
        assert worker.line == f"local worker serves laptop at {worker.url}\n"
        async with connected(worker) as client:
            body: Json = {"prompt": "The cat sat on the mat. " * 200, "max_tokens": 5}
            running = asyncio.create_task(client.stream("/v1/completions", body))
            await client.eventually_load(num_running_reqs=1)
            began = time.monotonic()
            worker.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.process.wait, 15) == 0
            assert time.monotonic() - began < 6
            await running


async def test_killed_while_loading() -> None:
    """SIGTERM while the model loads ends it as well."""
    process = start_worker("local")
    try:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 15) in {0, -signal.SIGTERM}
    finally:
        process.kill()
        process.communicate()

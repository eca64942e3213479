"""A gateway that is told to stop sends its waiters away, and ends what runs."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
import servers
from queue_http_system import (
    at_rest,
    clients,
    new_tenant,
    queue_system,
    store_of,
    until_waiting,
)

pytestmark = [pytest.mark.fault, pytest.mark.timeout(90)]
TOLD_WITHIN_S = 1.0


async def test_waiters_of_a_gateway_that_stops_are_told_at_once(tmp_path: Path) -> None:
    """503 `no_capacity` with `retry-after`, of both classes, long before the grace time is over.
    What runs there goes on to its end and is recorded; who waits at another gateway waits on."""
    with queue_system(tmp_path, slots=2, gateways=2, speed=2.0) as system:
        runs, waits = new_tenant(system), new_tenant(system)
        batch = new_tenant(system, "batch")
        with store_of(system) as store:
            async with clients(system) as crowd:
                running = [crowd.ask(runs.key(), gateway=index, stream=True) for index in (0, 1)]
                await servers.eventually(lambda: system.running() == 2, what="the worker is full")
                here = [crowd.ask(each.key(), gateway=0) for each in (waits, batch)]
                there = crowd.ask(waits.key(), gateway=1)
                await until_waiting(store, 3)
                stopped = time.monotonic()
                os.kill(system.ready["pids"]["gateways"][0], signal.SIGTERM)
                for told in await asyncio.gather(*here):
                    assert (told.status, told.error["code"]) == (503, "no_capacity")
                    assert int(told.headers["retry-after"]) >= 1
                    assert told.ended - stopped < TOLD_WITHIN_S
                await servers.eventually(
                    lambda: [each.tenant for each in store.waiting()] == [waits.tenant],
                    within_s=1,
                    what="only who asked the other gateway waits",
                )
                for answer in await asyncio.gather(*running, there):
                    assert answer.status == 200
                    record = await system.record(answer.headers["x-request-id"], within_s=15)
                    assert record["outcome"] == "completed"
            await at_rest(store)
        rows = await system.sql("SELECT count(*) FROM usage_records")
        assert rows[0][0] == 3

"""A gateway that stops: its last numbers reach the collector, which cannot hold it up."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from metrics_collector import collector
from servers import free_port

from gateway.telemetry.metrics_push import LAST_PUSH_S

WITHIN_S = 30.0
NEVER_MS = "3600000"


@asynccontextmanager
async def serving(environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """`weir serve`, once it answers; what is left of it is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", env={**os.environ, **environment},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        url = f"http://{environment['WEIR_LISTEN']}/metrics"
        deadline = time.monotonic() + WITHIN_S
        async with aiohttp.ClientSession() as session:
            while True:
                assert process.returncode is None
                assert time.monotonic() < deadline
                try:
                    async with session.get(url) as answer:
                        assert answer.status == 200
                        break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("answers", [True, False])
async def test_a_stop_sends_the_last_numbers_and_waits_for_nobody(
    answers: bool, redis_url: str, database_url: str, tmp_path: Path
) -> None:
    """Also where the collector takes the connection and says nothing."""
    async with collector() as found:
        environment = {
            "WEIR_REDIS_URL": redis_url,
            "WEIR_DATABASE_URL": database_url,
            "WEIR_JOURNAL_DIR": str(tmp_path / "journal"),
            "WEIR_LISTEN": f"127.0.0.1:{free_port()}",
            "WEIR_LOG_FORMAT": "json",
            "WEIR_METRICS_PUSH_MS": NEVER_MS,
            "OTEL_EXPORTER_OTLP_ENDPOINT": found.url.removesuffix("/v1/metrics"),
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        async with serving(environment) as process:
            assert found.bodies == []
            if not answers:
                found.answers.clear()
            began_s = time.monotonic()
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(WITHIN_S):
                assert await process.wait() == 0
            if not answers:
                assert time.monotonic() - began_s > LAST_PUSH_S / 2
        assert len(found.bodies) == 1
        draining = found.metrics["weir_draining"].gauge.data_points
        assert [point.as_double for point in draining] == [1]
        assert found.metrics["process_cpu_seconds"].sum.is_monotonic
        assert found.resource["service.name"] == "weir-gateway"
        assert found.resource["deployment.environment.name"] == "test"
        assert found.resource["service.instance.id"].startswith("gw-")

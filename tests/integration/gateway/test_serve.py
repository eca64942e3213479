"""`weir serve` as a process: a stop that was asked for is no death."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from servers import free_port
from sqlalchemy import text

from billing.postgres.schema import newest_revision
from gateway.adapters.postgres import async_engine
from gateway.migrate import downgrade
from gateway.serve import require_schema

WITHIN_S = 30.0


def until_alive(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + WITHIN_S
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        asked = HTTPConnection("127.0.0.1", port, timeout=1)
        with closing(asked), suppress(OSError):
            asked.request("GET", "/healthz")
            assert asked.getresponse().status == 200
            return
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_gateway_that_is_told_to_stop_ends_with_status_0(
    number: signal.Signals, redis_url: str, database_url: str, tmp_path: Path
) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve"],
        env={
            **os.environ,
            "WEIR_REDIS_URL": redis_url,
            "WEIR_DATABASE_URL": database_url,
            "WEIR_JOURNAL_DIR": str(tmp_path / "journal"),
            "WEIR_LISTEN": f"127.0.0.1:{port}",
        },
    )
    try:
        until_alive(process, port)
        process.send_signal(number)
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()


async def started(database_url: str, redis_url: str, folder: Path) -> tuple[int, str]:
    """How a gateway ends that cannot serve, and what it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "serve"),
        env={
            **os.environ,
            "WEIR_REDIS_URL": redis_url,
            "WEIR_DATABASE_URL": database_url,
            "WEIR_JOURNAL_DIR": str(folder / "journal"),
            "WEIR_LISTEN": f"127.0.0.1:{free_port()}",
        },
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_a_database_that_is_not_migrated_is_refused_in_one_line(
    redis_url: str, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    """It says what to run; nothing is journaled."""
    await downgrade(database_url, "0018")
    for url, found in ((database_url, "0018"), (empty_database_url, "nothing")):
        status, said = await started(url, redis_url, tmp_path)
        last = said.splitlines()[-1]
        assert (status, last) == (
            1,
            f"weir: the database is at {found}, {newest_revision()} is needed: run weir migrate",
        )
    assert not (tmp_path / "journal").exists()


async def test_a_database_of_a_later_release_is_served(database_url: str) -> None:
    """Migrations come first, and the gateways of before go on; it is said once."""
    engine = async_engine(database_url, pooled=False)
    await require_schema(engine)
    async with engine.begin() as db:
        await db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await require_schema(engine)
    await engine.dispose()

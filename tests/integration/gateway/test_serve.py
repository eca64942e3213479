"""`weir serve` as a process: a stop that was asked for is no death."""

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

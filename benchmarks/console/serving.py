"""A gateway as it runs in production, spoken to over loopback, and what it takes."""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from servers import free_port

WAIT_S = 60
CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Answer(NamedTuple):
    """What came back, after how long."""

    status: int
    size: int
    ms: float
    to: str


class Serving:
    """The gateway's process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    def cpu_ms(self) -> float:
        """Of all its threads so far."""
        return cpu_ms(self._process.pid)

    def visitor(self, email: str, password: str) -> "Visitor":
        """Somebody who is logged in. Raises RuntimeError where the log-in is refused."""
        visitor = Visitor(self.port)
        visitor.log_in(email, password)
        return visitor


class Visitor:
    """A browser's one connection, without what a browser does beside."""

    def __init__(self, port: int) -> None:
        self._host = f"127.0.0.1:{port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._cookie = ""

    def log_in(self, email: str, password: str) -> None:
        """Keep the session's cookie."""
        body = urlencode({"email": email, "password": password, "next": ""})
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"http://{self._host}",
            "sec-fetch-site": "same-origin",
        }
        self._connection.request("POST", "/console/login", body, headers)
        answer = self._connection.getresponse()
        answer.read()
        cookies = answer.headers.get_all("set-cookie") or []
        session = [each.split(";")[0] for each in cookies if each.startswith("weir_session=")]
        if answer.status != 303 or not session:
            raise RuntimeError(f"the log-in was answered with {answer.status}")
        self._cookie = session[0]

    def anew(self) -> None:
        """Over another connection: the gateway closes one that is idle for long."""
        self._connection.close()

    def get(self, path: str) -> Answer:
        """One page, read whole."""
        began_s = time.perf_counter()
        self._connection.request("GET", path, headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        took_ms = (time.perf_counter() - began_s) * 1000
        parts = urlsplit(answer.headers.get("location", ""))
        return Answer(answer.status, len(body), took_ms, parts.path)


@contextmanager
def serving(database_url: str, redis_url: str, folder: Path, lease_ms: int) -> Iterator[Serving]:
    """`weir serve` until the block ends."""
    port = free_port()
    environ = {
        **os.environ,
        "WEIR_DATABASE_URL": database_url,
        "WEIR_REDIS_URL": redis_url,
        "WEIR_JOURNAL_DIR": str(folder / "journal"),
        "WEIR_LISTEN": f"127.0.0.1:{port}",
        "WEIR_LEASE_TTL_MS": str(lease_ms),
    }
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve"], env=environ, stdout=log, stderr=log
        )
        try:
            _wait(process, port, folder / "gateway.log")
            yield Serving(process, port)
        finally:
            process.terminate()
            process.wait(60)


def cpu_ms(pid: int) -> float:
    """Of all threads of a process so far; 0 where it is gone."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except OSError:
            continue
    return total / 1e6


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the gateway does not serve: {log.read_text()[-2000:]}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()

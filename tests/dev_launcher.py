"""`weir dev` run as a person runs it, in a process of its own, for tests."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec
from servers import PACKAGES, TESTS, free_port, process_state, python_for

from gateway.dev_ready import Ready

START_WITHIN_S = 90.0
STOP_WITHIN_S = 40.0
POLL_S = 0.02


@dataclass
class DevRun:
    """One launcher, and what it prints."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    port: int
    output_path: Path

    @property
    def output(self) -> str:
        """All that it has printed so far."""
        return self.output_path.read_text()

    @property
    def url(self) -> str:
        """The first gateway's address."""
        return f"http://127.0.0.1:{self.port}"

    def ready(self) -> Ready:
        """`ready.json`, once it is there."""
        path = self.data_dir / "ready.json"
        self.until(path.exists, "ready.json")
        return msgspec.json.decode(path.read_bytes(), type=Ready)

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Return once `holds()`; fails, showing the output, where the launcher ends before."""
        deadline = time.monotonic() + START_WITHIN_S
        while not holds():
            ended = self.process.poll()
            assert ended is None, f"weir dev ended with {ended} before {what}:\n{self.output}"
            assert time.monotonic() < deadline, f"no {what} in time:\n{self.output}"
            time.sleep(POLL_S)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def stop(self) -> int:
        """Ctrl-C, and its exit status."""
        if self.process.poll() is None:
            self.interrupt()
        return self.process.wait(STOP_WITHIN_S)

    def pids(self) -> list[int]:
        """Every process that it says it runs."""
        pids = self.ready().pids
        hosted = pids.hosted or ()
        return [
            *pids.gateways,
            *pids.workers,
            *hosted,
            *(p for p in (pids.redis, pids.postgres) if p),
        ]


@contextmanager
def weir_dev(
    data_dir: Path,
    *options: str,
    port: int | None = None,
    account: tuple[int, int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[DevRun]:
    """Start it with an empty PATH and HOME; whatever is left of it at the end is stopped."""
    user, group = account or (None, None)
    port = port or free_port()
    # One start has one output, wherever its data are and however often it was started before.
    output_path = data_dir.parent / f"{data_dir.name}.{time.monotonic_ns()}.out"
    with output_path.open("wb") as output:
        process = subprocess.Popen(
            [
                *(python_for(account, "gateway.dev_system"), "-m", "gateway", "dev"),
                *("--data-dir", str(data_dir), "--port", str(port), *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={
                "PATH": "",
                "HOME": "",
                "PYTHONPATH": f"{TESTS.parent}:{PACKAGES}",
                **(environment or {}),
            },
            cwd="/",
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )
    run = DevRun(process, data_dir, port, output_path)
    try:
        yield run
    finally:
        run.stop()


def all_gone(pids: list[int]) -> bool:
    """Whether none of them runs. A zombie, where PID 1 reaps nobody, does not."""
    return all(process_state(pid) in (None, "Z") for pid in pids)


async def status_of(url: str, secret: str | None = None) -> int:
    """The status of a GET; 0 where nobody answers."""
    headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
    try:
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
            return answer.status
    except (aiohttp.ClientError, OSError):
        return 0


def kill(pid: int) -> None:
    """kill -9."""
    os.kill(pid, signal.SIGKILL)

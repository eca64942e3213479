"""A real gateway process on a disk that a test can break.

`python disk_gateway.py CONTROL` is `weir serve` with the faults that the file CONTROL names
(`controlled_storage`), and with none while it is empty or missing.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import servers
import uvloop
from controlled_storage import ControlledStorage
from weir_dev import WeirDev

from gateway.serve import serve_until_stopped
from gateway.settings import load_settings
from gateway.telemetry.logs import configure_logging


@dataclass
class DiskGateway:
    """The process, where it answers, and its files."""

    process: subprocess.Popen[bytes]
    url: str
    journal: Path
    control: Path
    log: Path

    def fail(self, *faults: str) -> None:
        """From the next call to the disk on; without faults the disk is well again."""
        draft = self.control.with_suffix(".draft")
        draft.write_text("\n".join(faults))
        draft.rename(self.control)

    def condition(self, system: WeirDev) -> tuple[int, list[str]]:
        """Status and words of `/readyz`."""
        reply = system.request("GET", self.url + "/readyz")
        return reply.status, reply.json["degraded"]


def launched(system: WeirDev, folder: Path, *faults: str, **settings: str) -> DiskGateway:
    """One more gateway of a running system, its journal in `folder`; it may end at once."""
    port = servers.free_port()
    environment = {
        **os.environ,
        "WEIR_DATABASE_URL": system.ready["database_url"],
        "WEIR_REDIS_URL": system.ready["redis_url"],
        "WEIR_JOURNAL_DIR": str(folder / "journal"),
        "WEIR_LISTEN": f"127.0.0.1:{port}",
        "WEIR_SHUTDOWN_GRACE_MS": "1000",
        **settings,
    }
    folder.mkdir(exist_ok=True)
    control = folder / "control"
    control.write_text("\n".join(faults))
    command = [sys.executable, __file__, str(control)]
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    return DiskGateway(
        process, f"http://127.0.0.1:{port}", folder / "journal", control, folder / "gateway.log"
    )


@contextmanager
def disk_gateway(
    system: WeirDev, folder: Path, *faults: str, **settings: str
) -> Iterator[DiskGateway]:
    """The same, ready, until the block ends."""
    gateway = launched(system, folder, *faults, **settings)
    deadline = time.monotonic() + 60
    try:
        while True:
            with suppress(OSError):
                if system.request("GET", gateway.url + "/readyz").status == 200:
                    break
            assert gateway.process.poll() is None, gateway.log.read_text()
            assert time.monotonic() < deadline, gateway.log.read_text()
            time.sleep(0.02)
        yield gateway
    finally:
        gateway.process.send_signal(signal.SIGTERM)
        try:
            gateway.process.wait(20)
        except subprocess.TimeoutExpired:
            gateway.process.kill()
            gateway.process.wait()


if __name__ == "__main__":
    configure_logging()
    storage = ControlledStorage(Path(sys.argv[1]))
    sys.exit(uvloop.run(serve_until_stopped(load_settings(), storage=storage)))

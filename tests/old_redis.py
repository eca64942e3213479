"""A Valkey of a test's own that keeps snapshots only, and so comes back as it was at the last."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from servers import free_port

from backend.embedded.binaries import valkey_server

STARTS_WITHIN_S = 20.0


class OldRedis:
    """Without an append-only file, as Redis is by default."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.plain = redis.Redis(port=self.port, decode_responses=True)
        self.start()

    @property
    def url(self) -> str:
        """Its address, the same each time."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it with the last snapshot, and wait until it answers."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command = [str(valkey_server()), *options, "--save", "3600 1 300 100 60 10000"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            with suppress(redis.RedisError):
                if self.plain.ping():
                    return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.01)

    def snapshot(self) -> None:
        """What it is when it comes back."""
        self.plain.save()

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait()

    def go_back(self) -> None:
        """Be killed, and be again what it was at the last snapshot."""
        self.kill()
        self.start()


@contextmanager
def old_redis(folder: Path) -> Iterator[OldRedis]:
    """One, until the block ends."""
    made = OldRedis(folder)
    try:
        yield made
    finally:
        made.plain.close()
        made.kill()

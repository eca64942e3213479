"""A Valkey that a test may break, and the way to it: a proxy."""

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
import servers
from pausable_proxy import PausableProxy

from backend.embedded import DataDir, EmbeddedValkey, running


class ProxyThread:
    """A PausableProxy in a thread of its own."""

    def __init__(self, url: str) -> None:
        self.proxy = PausableProxy(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.run(self.proxy.listen)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it in the proxy's own loop."""
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)

    def hang(self) -> None:
        async def hang() -> None:
            self.proxy.hang()

        self.run(hang)

    def delay(self, seconds: float) -> None:
        async def delay() -> None:
            self.proxy.delay_s = seconds

        self.run(delay)

    def cut(self) -> None:
        self.run(self.proxy.cut)

    def refuse(self) -> None:
        self.run(self.proxy.refuse)

    def heal(self) -> None:
        self.run(self.proxy.heal)

    def close(self) -> None:
        self.hang()
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class Store:
    """A Valkey at one address, whatever lies in it and whether it runs."""

    folder: Path
    proxy: ProxyThread = field(init=False)
    starts: int = 0

    def __post_init__(self) -> None:
        self._port = servers.free_port()
        self._running: Any = None
        self._data_dir: DataDir
        self.start()
        self.proxy = ProxyThread(self.url)

    def start(self, *, empty: bool = False) -> None:
        """Start it, on a folder of its own where it is to be empty."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._data_dir.close()
        if empty or self.starts == 0:
            self.starts += 1
        here = self.folder / f"valkey-{self.starts}"
        (here / "valkey").mkdir(parents=True, exist_ok=True)
        (here / "valkey" / "port").write_text(str(self._port))
        (here / "valkey" / "password").write_text("secret")
        self._data_dir = DataDir.open(here)
        self._valkey = EmbeddedValkey(self._data_dir)
        assert self._valkey.port == self._port
        self._running = running(self._valkey)
        self.process: subprocess.Popen[bytes] = self._running.__enter__()

    @property
    def url(self) -> str:
        """Its address, without the proxy."""
        return self._valkey.url

    @contextmanager
    def client(self) -> Iterator["redis.Redis"]:
        """A client of it, without the proxy."""
        with redis.Redis.from_url(self.url) as client:
            yield client

    def kill(self) -> None:
        """`kill -9`; `start` brings it back."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """The end."""
        self.proxy.close()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self._running.__exit__(None, None, None)
        self._data_dir.close()

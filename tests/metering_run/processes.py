"""Processes of a run that may be killed, stopped and paused, and that the run starts again."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from backend.embedded import Launch, spawn

READY_S = 90.0
POLL_S = 0.02
AGAIN_S = 0.3


class Process:
    """One program at one address. From the main thread only: the kernel ties children to it."""

    def __init__(
        self,
        name: str,
        launch: Callable[[], Launch],
        is_ready: Callable[[], Awaitable[bool]],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.statuses: list[int] = []
        """How it ended, each time that it was told to."""
        self.turn = asyncio.Lock()
        """Whoever does something to it, until it is back."""
        self._launch, self._is_ready, self._stop_signal = launch, is_ready, stop_signal
        self._child: subprocess.Popen[bytes] | None = None
        self._log_path: Path | None = None

    @property
    def pid(self) -> int:
        """Of the present one."""
        assert self._child is not None
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def begin(self) -> None:
        """Start it, without waiting for it to serve."""
        launch = self._launch()
        self._log_path = launch.log_path
        self._child = spawn(launch)

    async def serves(self) -> None:
        """Wait until it does."""
        deadline = time.monotonic() + READY_S
        while not await self._is_ready():
            assert self.runs, f"{self.name} has ended: {self.said}"
            assert time.monotonic() < deadline, f"{self.name} does not serve: {self.said}"
            await asyncio.sleep(POLL_S)

    async def start(self) -> None:
        """Both."""
        self.begin()
        await self.serves()

    async def come_back(self) -> None:
        """Start it until it serves, as whoever supervises it would: without its stores it ends."""
        deadline = time.monotonic() + READY_S
        self.begin()
        while not await self._is_ready():
            assert time.monotonic() < deadline, f"{self.name} does not come back: {self.said}"
            await asyncio.sleep(POLL_S)
            if not self.runs:
                await asyncio.sleep(AGAIN_S)
                self.begin()

    def kill(self) -> None:
        """kill -9, and its remains are taken away."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def send(self, what: signal.Signals) -> None:
        """A signal."""
        if self._child is not None and self.runs:
            self._child.send_signal(what)

    async def stop(self, within_s: float = 40.0) -> int:
        """Ask it to end; its status, -9 where it had to be killed."""
        assert self._child is not None
        self.send(signal.SIGCONT)
        self.send(self._stop_signal)
        try:
            status = await asyncio.to_thread(self._child.wait, within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            status = -signal.SIGKILL
        self.statuses.append(status)
        return status

    @property
    def said(self) -> str:
        """The end of its log."""
        text = "" if self._log_path is None else self._log_path.read_text(errors="replace")
        return text[-3000:]

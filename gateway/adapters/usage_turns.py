"""Turns at something that few may do at once, fair between those who ask."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LineFull(Exception):
    """Somebody has so many waiting already that one more is refused at once."""


class NoTurn(Exception):
    """It took too long; `behind_itself` where one of the same name is at it."""

    def __init__(self, *, behind_itself: bool) -> None:
        super().__init__()
        self.behind_itself = behind_itself


class FairTurns:
    """At most `at_once` in all and one of each who asks; up to `waiting_max` of each wait.

    Who asks most waits for itself: lines are served in turn, one of each, so that between two turns
    of one every other that waits has had one.
    """

    def __init__(self, *, at_once: int, waiting_max: int) -> None:
        self._free = at_once
        self._waiting_max = waiting_max
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """Those of each who wait; the first line is the next to be served."""
        self._busy: set[str] = set()

    @asynccontextmanager
    async def turn(self, name: str, *, wait_s: float) -> AsyncIterator[None]:
        """While it is somebody's turn. Raises LineFull at once, NoTurn after `wait_s`."""
        await self._take(name, wait_s)
        try:
            yield
        finally:
            self._give_back(name)

    async def _take(self, name: str, wait_s: float) -> None:
        line = self._lines.setdefault(name, deque())
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(asked)
        self._serve()
        if not asked.done() and len(line) > self._waiting_max:
            self._leave(name, asked)
            raise LineFull
        try:
            async with asyncio.timeout(wait_s):
                await asked
        except BaseException as error:
            if asked.done() and not asked.cancelled():
                self._give_back(name)  # its turn came as it left
            else:
                self._leave(name, asked)
            if isinstance(error, TimeoutError):
                raise NoTurn(behind_itself=name in self._busy) from error
            raise

    def _leave(self, name: str, asked: asyncio.Future[None]) -> None:
        line = self._lines.get(name, deque())
        if asked in line:
            line.remove(asked)
        if not line:
            self._lines.pop(name, None)

    def _give_back(self, name: str) -> None:
        self._busy.discard(name)
        self._free += 1
        if name in self._lines:
            self._lines[name] = self._lines.pop(name)  # behind all who came meanwhile
        self._serve()

    def _serve(self) -> None:
        for name in list(self._lines):
            if not self._free:
                return
            if name in self._busy:
                continue
            line = self._lines[name]
            while line and line[0].cancelled():
                line.popleft()
            if line:
                line.popleft().set_result(None)
                self._busy.add(name)
                self._free -= 1
            if not line:
                del self._lines[name]

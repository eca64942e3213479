"""Sleeping between two tries, for no longer than somebody has time."""

import asyncio
import contextlib
from collections.abc import Iterator

HURRIED_S = 0.25
"""How long a sleep may still be while somebody is in a hurry: no loop without a rest."""


class Pause:
    """The sleeps of one loop."""

    def __init__(self) -> None:
        self._hurried = asyncio.Event()

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """While the block runs: a sleep that is under way ends, and others are short."""
        self._hurried.set()
        try:
            yield
        finally:
            self._hurried.clear()

    async def sleep(self, seconds: float) -> None:
        """So long, or less where somebody is in a hurry."""
        if self._hurried.is_set():
            await asyncio.sleep(min(seconds, HURRIED_S))
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurried.wait()

"""Journals of gateways that an earlier `weir dev` ran on this directory and this one does not."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from gateway.adapters.journal.sight import journals_below
from gateway.adoption import adopt
from gateway.errors import WeirError
from gateway.settings import Settings

SHIP_MS = 600_000


class Leftovers:
    """Brings their rows home, behind everything else. What fails is said, and tried again at the
    next start."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._task: asyncio.Task[None] | None = None

    def ship(
        self, journals: Path, *, running: frozenset[str], database_url: str, redis_url: str
    ) -> None:
        """Begin with the journals in that folder, those of `running` gateways left out."""
        found = [path for path in journals_below(journals) if path.name not in running]
        if found:
            self._task = asyncio.create_task(self._ship(found, database_url, redis_url))

    async def stop(self) -> None:
        """What is under way stays in its journal."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _ship(self, found: list[Path], database_url: str, redis_url: str) -> None:
        for path in found:
            settings = Settings(database_url=database_url, redis_url=redis_url, journal_dir=path)
            try:
                adopted = await adopt(path, settings, timeout_ms=SHIP_MS)
            except (WeirError, OSError) as error:
                self._say(f"journal of {path.name}: not shipped: {error}")
                continue
            if adopted.shipped or not adopted.whole:
                left = "" if adopted.whole else f", {adopted.unshipped} records are left"
                self._say(f"journal of {path.name}: {adopted.shipped} rows shipped{left}")

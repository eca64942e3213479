"""How complete the usage in Postgres is, asked of both stores."""

import asyncio
import logging
import time
from typing import NamedTuple

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.dead_letters import count_open
from billing.postgres.journals_behind import load_behind
from gateway.adapters.presence import Gateways
from gateway.domain.completeness import NOT_KNOWN, Completeness, completeness
from gateway.serving.ports import LedgerUnavailable

EVERY_S = 2.0
HOLDS_S = 1.0
"""What was found is told again for so long."""
BEHIND_S = 5.0
TIMEOUT_S = 2.0
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """How far all gateways are, and how many records Postgres refused."""

    completeness: Completeness
    dead_letters: int

    def covers(self, until_ms: int | None) -> bool:
        """Whether the usage before `until_ms` (None: up to now) is complete. A refused record is
        missing somewhere: nothing is, while one waits for a person."""
        return self.dead_letters == 0 and self.completeness.covers(until_ms)


class UsageCompleteness:
    """Looks every other second, for the gauge and `/readyz`, and when it is asked."""

    def __init__(self, gateways: Gateways, postgres: AsyncEngine) -> None:
        self._gateways = gateways
        self._postgres = postgres
        self._found: tuple[float, Found] | None = None
        self._behind_since_s: float | None = None
        self._looking = asyncio.Lock()

    @property
    def latest(self) -> Completeness:
        """As it was when somebody last looked; unknown where that was long ago."""
        if self._found is None or time.monotonic() - self._found[0] > 5 * EVERY_S:
            return NOT_KNOWN
        return self._found[1].completeness

    @property
    def is_late(self) -> bool:
        """Whether some gateway has been behind for a while: one that begins is, for a moment."""
        since_s = self._behind_since_s
        return since_s is not None and time.monotonic() - since_s > BEHIND_S

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> Found:
        """How it is now, or was a second ago. Never raises: what cannot be asked is not known."""
        asked_s = time.monotonic()
        async with self._looking:
            if self._found is None or self._found[0] < asked_s - HOLDS_S:
                self._found = (time.monotonic(), await self._ask())
                self._note(self._found[1].completeness)
            return self._found[1]

    def _note(self, found: Completeness) -> None:
        if not found.behind:
            self._behind_since_s = None
        elif self._behind_since_s is None:
            self._behind_since_s = time.monotonic()

    async def _ask(self) -> Found:
        dead_letters = 0
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async with self._postgres.connect() as db:
                    lacking = [each.gateway_id for each in await load_behind(db)]
                    dead_letters = await count_open(db)
                gateways = await self._gateways.standings()
                # Nobody is waited for at the beginning of time, but who was not heard of yet.
                if await self._gateways.waited_for(0):
                    return Found(NOT_KNOWN, dead_letters)
                now_ms = await self._gateways.ask()
        except (LedgerUnavailable, *_AWAY) as error:
            logger.debug("completeness: not known (%s)", type(error).__name__)
            return Found(NOT_KNOWN, dead_letters)
        return Found(completeness(gateways, now_ms=now_ms, lacking=lacking), dead_letters)

"""Usage in sums, and whether they are complete."""

import asyncio
from dataclasses import dataclass

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.usage_records import GroupBy, UsageFilter, UsageSum, sum_usage
from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.domain.instants import shown
from gateway.errors import StoreUnavailable

STATEMENT_TIMEOUT_MS = 10_000
WAIT_S = 5.0
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@dataclass(frozen=True)
class UsageReport:
    """Sums in the order of their groups. `found` was asked before they were read: what it says is
    in Postgres is in them."""

    sums: list[UsageSum]
    found: Found

    @property
    def provisional_requests(self) -> int:
        """Those whose account another gateway gave; their own may still replace it."""
        return sum(each.provisional_requests for each in self.sums)


class UsageReports:
    """One at a time: many who ask for sums never keep others from the pool that they share."""

    def __init__(self, postgres: AsyncEngine, completeness: UsageCompleteness) -> None:
        self._postgres = postgres
        self._completeness = completeness
        self._turn = asyncio.Semaphore(1)

    async def report(
        self, chosen: UsageFilter, *, group_by: GroupBy, time_zone: str
    ) -> UsageReport:
        """Raises StoreUnavailable, also where it would take too long."""
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turn.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("others are asking for usage: try again") from error
        try:
            found = await self._completeness.look()
            sums = await self._sums(chosen, group_by, time_zone)
        except _AWAY as error:
            raise StoreUnavailable("usage cannot be read at the moment") from error
        finally:
            self._turn.release()
        return UsageReport(sums, found)

    async def _sums(self, chosen: UsageFilter, group_by: GroupBy, time_zone: str) -> list[UsageSum]:
        async with self._postgres.connect() as db:
            await db.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"))
            return await sum_usage(db, chosen, group_by=group_by, time_zone=time_zone)


def standing_view(
    found: Found, *, until_ms: int | None, provisional_requests: int
) -> dict[str, object]:
    """How every answer about usage says whether anything may be missing of it."""
    return {
        "complete": found.covers(until_ms),
        "complete_through": shown(found.completeness.through_ms),
        "provisional_requests": provisional_requests,
    }

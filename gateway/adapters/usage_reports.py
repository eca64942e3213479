"""Usage in sums, and whether they are complete."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.postgres.rolled_usage import sum_rolled_usage
from billing.postgres.usage_charts import Measure, Place, UsageChart, read_chart
from billing.postgres.usage_records import GroupBy, UsageFilter, UsageSum
from billing.postgres.usage_sources import Chosen
from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.usage_turns import FairTurns, LineFull, NoTurn
from gateway.domain.instants import shown
from gateway.errors import LimitReached, StoreUnavailable

TENANTS_AT_ONCE = 2
"""Tenants whose sums are read at once: one that asks for much holds up no other."""
WAITING_MAX = 4
"""Of one tenant so many wait behind the one that is read; finance may have more."""
FINANCE_WAITING_MAX = 16
TIMEOUT_MS = 10_000
"""Of all statements of one look together."""
WAIT_S = 15.0
"""Longer than one look takes: a turn comes, whoever has it now."""
AGAIN_MS = 1_000
_FINANCE = "finance"
Result = TypeVar("Result")
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
    """One at a time for each tenant and one for all of finance, two tenants at once, in fair turns.

    `postgres` has POOL_SIZE connections and is nobody else's: sums keep no others waiting.
    """

    POOL_SIZE = TENANTS_AT_ONCE + 1

    def __init__(self, postgres: AsyncEngine, completeness: UsageCompleteness) -> None:
        self._postgres = postgres
        self._completeness = completeness
        self._tenants = FairTurns(at_once=TENANTS_AT_ONCE, waiting_max=WAITING_MAX)
        self._finance = FairTurns(at_once=1, waiting_max=FINANCE_WAITING_MAX)

    async def report(
        self,
        chosen: UsageFilter,
        *,
        group_by: GroupBy,
        time_zone: str,
        asked_by: str | None = None,
    ) -> UsageReport:
        """For a tenant, or finance (`asked_by` None), whomever it is of. Raises LimitReached where
        too many of that tenant wait, StoreUnavailable also where it would take too long."""

        async def summed(db: AsyncConnection) -> list[UsageSum]:
            return await self._sums(db, chosen, group_by, time_zone)

        return UsageReport(*await self.read(summed, asked_by=asked_by))

    async def chart(
        self,
        chosen: Chosen,
        *,
        width: timedelta,
        by: str,
        measure: Measure,
        limit: int,
        after: Place | None = None,
        asked_by: str | None = None,
    ) -> tuple[UsageChart, Found]:
        """The largest groups over time and a page of all. Raises as `report` does."""

        async def work(db: AsyncConnection) -> UsageChart:
            return await read_chart(
                db, chosen, width=width, by=by, measure=measure, limit=limit, after=after
            )

        return await self.read(work, asked_by=asked_by)

    async def read(
        self, work: Callable[[AsyncConnection], Awaitable[Result]], *, asked_by: str | None
    ) -> tuple[Result, Found]:
        """What `work` reads of usage in whoever's turn it is, and what was known of completeness
        before. Raises as `report` does."""
        async with self._turn(asked_by):
            try:
                found = await self._completeness.look()
                async with self._postgres.connect() as db, asyncio.timeout(TIMEOUT_MS / 1000):
                    # Where this process is gone, nobody else ends it.
                    await db.execute(text(f"SET LOCAL statement_timeout = {TIMEOUT_MS}"))
                    return await work(db), found
            except _AWAY as error:
                raise StoreUnavailable("usage cannot be read at the moment") from error

    async def _sums(
        self, db: AsyncConnection, chosen: UsageFilter, group_by: GroupBy, time_zone: str
    ) -> list[UsageSum]:
        return await sum_rolled_usage(db, chosen, group_by=group_by, time_zone=time_zone)

    @asynccontextmanager
    async def _turn(self, asked_by: str | None) -> AsyncIterator[None]:
        turns, name = (self._tenants, asked_by) if asked_by else (self._finance, _FINANCE)
        try:
            async with turns.turn(name, wait_s=WAIT_S):
                yield
        except (LineFull, NoTurn) as error:
            if asked_by is None or (isinstance(error, NoTurn) and not error.behind_itself):
                raise StoreUnavailable("others are asking for usage: try again") from error
            raise LimitReached(
                "too many questions about usage at once: ask one after another",
                kind="requests",
                retry_after_ms=AGAIN_MS,
            ) from error


def standing_view(
    found: Found, *, until_ms: int | None, provisional_requests: int
) -> dict[str, object]:
    """How every answer about usage says whether anything may be missing of it."""
    return {
        "complete": found.covers(until_ms),
        "complete_through": shown(found.completeness.through_ms),
        "provisional_requests": provisional_requests,
    }

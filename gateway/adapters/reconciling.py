"""Roll-ups, what is rated later, and reconciliation, behind the requests: every gateway offers, one
works at a time.

Each minute the last quarter of an hour that has closed is reconciled, each night the day before.
What was found is kept in Postgres; every gateway shows what is there.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.reconciliation.findings import count_findings
from billing.postgres.coarse_rollups import make_coarser
from billing.postgres.rate_later import rate_rolled_up
from billing.postgres.reconcile_runs import Kind, claim, is_due, keep_run, latest_findings
from billing.postgres.rollups import newest_mark, roll_up
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_journals import JournalFiles
from gateway.adapters.repeating import repeat

ROLL_UP_PERIOD_S = 5.0
RECONCILE_PERIOD_S = 60.0
RATE_PERIOD_S = 60.0
QUARTER = timedelta(minutes=15)
CLOSED = timedelta(minutes=1)
"""So long after its end a quarter is looked at: what it holds is shipped by then."""
NIGHT = timedelta(minutes=20)
"""So long after midnight, UTC, the day before is."""
REPLAYED_MAX = 1_000
"""Records of this gateway's own journal that a run replays."""
logger = logging.getLogger(__name__)


class Reconciling:
    """One gateway's. `journals` are its own, which it replays. What any gateway has looked at less
    than `again_s` ago is not looked at again."""

    def __init__(
        self,
        engine: AsyncEngine,
        reconciler: Reconciler,
        journals: Sequence[JournalFiles] = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        again_s: float = RECONCILE_PERIOD_S / 2,
    ) -> None:
        self._engine = engine
        self._reconciler = reconciler
        self._journals = journals
        self._now = now
        self._again = timedelta(seconds=again_s)
        self.findings: dict[str, int] = {}
        """Of each check, in the latest runs of any gateway."""

    @property
    def has_findings(self) -> bool:
        """Whether anything was found that is not resolved, as far as the latest runs know."""
        return any(self.findings.values())

    async def run(self) -> None:
        """All of it, for ever; what fails is tried again at its next turn."""
        await asyncio.gather(
            repeat("roll-ups", self.roll_up, ROLL_UP_PERIOD_S, logger=logger),
            repeat("reconciliation", self.turn, RECONCILE_PERIOD_S, logger=logger),
            repeat("rating", self.rate, RATE_PERIOD_S, logger=logger),
        )

    async def roll_up(self) -> None:
        """Make anew what is out of date now, each quarter once and then the days that are over, or
        leave it to another gateway that does. What is marked meanwhile waits for the next time.
        Raises one of AWAY."""
        async with self._engine.connect() as db:
            newest = await newest_mark(db)
        while newest is not None:
            async with self._engine.begin() as db:
                if not await roll_up(db, up_to=newest):
                    break
        while True:
            async with self._engine.begin() as db:
                if not await make_coarser(db):
                    return

    async def rate(self) -> None:
        """Rate what had no price and has one now. Raises one of AWAY."""
        rated = await rate_rolled_up(self._engine)
        if rated:
            logger.info("rated later: %d requests that had no price", rated)

    async def turn(self) -> None:
        """Reconcile what is due and see what was found. Raises one of AWAY."""
        now = self._now()
        closed = _floor(now - CLOSED, QUARTER)
        await self._reconcile(Kind.QUARTER, Period(closed - QUARTER, closed), self._again)
        midnight = _floor(now - NIGHT, timedelta(days=1))
        day = Period(midnight - timedelta(days=1), midnight)
        await self._reconcile(Kind.DAY, day, timedelta(days=365))
        async with self._engine.connect() as db:
            self.findings = await latest_findings(db)

    async def _reconcile(self, kind: Kind, period: Period, age: timedelta) -> None:
        async with self._engine.begin() as db:
            if not await claim(db) or not await is_due(db, kind, period.since, age=age):
                return
            started_at = datetime.now(UTC)
            scope = Scope(
                period,
                # Its latest records are of no day that is over, and quarters look at them again.
                self._journals if kind is Kind.QUARTER else (),
                count_rows=kind is Kind.DAY,
                replay_max=REPLAYED_MAX,
            )
            verdicts = await self._reconciler.run(scope)
            found = count_findings(verdicts)
            if found:
                logger.error("reconciliation: %d findings of the %s", found, kind.value)
            await keep_run(
                db, kind, period.since, period.until, started_at=started_at, verdicts=verdicts
            )


def _floor(at: datetime, step: timedelta) -> datetime:
    epoch = datetime.fromtimestamp(0, UTC)
    return at - (at - epoch) % step

"""Reconciliation of a period that somebody asks for, one at a time and of a day at most."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.domain.reconciliation.findings import Verdict
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.usage_turns import FairTurns, LineFull, NoTurn
from gateway.errors import StoreUnavailable, Unprocessable

LONGEST = timedelta(days=1)
QUARTER_MINUTES = 15
RUN_S = 60.0
"""So long it may take."""
WAITING_MAX = 2


class AskedReconciliations:
    """One gateway's. What they find is told, not kept."""

    def __init__(
        self, reconciler: Reconciler, *, longest: timedelta = LONGEST, run_s: float = RUN_S
    ) -> None:
        self._reconciler = reconciler
        self._longest = longest
        self._run_s = run_s
        self._turns = FairTurns(at_once=1, waiting_max=WAITING_MAX)

    async def run(
        self, since: datetime, until: datetime, *, now: datetime
    ) -> tuple[Period, Sequence[Verdict]]:
        """Every check's verdict on what was admitted at or after `since` and before `until`, both
        widened to whole quarters of an hour. Changes nothing. Raises Unprocessable naming `since`
        or `until`, and StoreUnavailable where a store is away or it would take too long."""
        if since >= until:
            raise Unprocessable("until: must be after the start", param="until")
        if since > now:
            raise Unprocessable("since: must be in the past", param="since")
        if until - since > self._longest:
            raise Unprocessable(
                "until: must be at most a day after the start; of longer times ask weir reconcile",
                param="until",
            )
        period = Period(_floor(since), _ceiling(until))
        try:
            async with self._turns.turn("console", wait_s=self._run_s):
                async with asyncio.timeout(self._run_s):
                    return period, await self._reconciler.run(Scope(period, count_rows=False))
        except (LineFull, NoTurn) as error:
            raise StoreUnavailable("others are reconciling: try again") from error
        except (PostgresError, SQLAlchemyError, OSError, TimeoutError) as error:
            raise StoreUnavailable(
                "it cannot be reconciled at the moment, or takes too long here: ask for less, or"
                " weir reconcile"
            ) from error


def _floor(at: datetime) -> datetime:
    """The quarter of an hour that `at` is in."""
    return at.replace(minute=at.minute - at.minute % QUARTER_MINUTES, second=0, microsecond=0)


def _ceiling(at: datetime) -> datetime:
    """The end of the quarter before which `at` is, or `at` where it is such an end."""
    floor = _floor(at)
    return floor if floor == at else floor + timedelta(minutes=QUARTER_MINUTES)

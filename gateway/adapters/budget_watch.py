"""Budgets are looked at behind the requests: every gateway offers, one judges at a time. What is
reached is kept once, however many gateways there are, and sent to the webhook until it is taken.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Text, cast, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.budget_alert import Budget, BudgetAlert, Spent, crossed
from billing.domain.invoicing.periods import Month, month_of_instant
from billing.postgres.budget_alerts import (
    keep_alerts,
    note_refused,
    note_sent,
    take_turn,
    take_unsent,
)
from billing.postgres.usage_buckets import sum_spent
from billing.postgres.usage_sources import Chosen
from gateway.adapters.alert_webhook import TIMEOUT_S, NotTaken, Webhook
from gateway.adapters.repeating import repeat
from gateway.adapters.tables import api_key, tenant
from gateway.domain.budgets import budgets_of, whose
from gateway.domain.tenant import Limits
from gateway.telemetry import budgets as metrics

JUDGE_PERIOD_S = 60.0
SEND_PERIOD_S = 5.0
SEND_AT_ONCE = 20
FIRST_WAIT = timedelta(seconds=10)
"""An alert that was not taken is sent again after so long, then after twice as long each time."""
LEASE = timedelta(seconds=3 * TIMEOUT_S)
"""An alert is one gateway's for so long, far longer than an attempt can take."""
LATE = timedelta(minutes=5)
"""So long after its end a month is still looked at: its last records come within that."""
STATEMENT_TIMEOUT_MS = 30_000
_HAS_BUDGET = "$.**.monthly_budget"
logger = logging.getLogger(__name__)


@dataclass
class _Budgeted:
    """A tenant with budgets."""

    time_zone: str
    currency: str
    budgets: list[Budget] = field(default_factory=list)


class BudgetWatch:
    """One gateway's. Without a `webhook` alerts are kept and shown, and sent nowhere."""

    def __init__(
        self,
        engine: AsyncEngine,
        webhook: Webhook | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        first_wait: timedelta = FIRST_WAIT,
    ) -> None:
        self._engine = engine
        self._webhook = webhook
        self._now = now
        self._first_wait = first_wait

    async def run(self) -> None:
        """All of it, for ever; what fails is tried again at its next turn."""
        loops = [repeat("budget alerts", self.judge, JUDGE_PERIOD_S, logger=logger)]
        if self._webhook is not None:
            loops.append(repeat("alert webhook", self.send, SEND_PERIOD_S, logger=logger))
        await asyncio.gather(*loops)

    async def judge(self) -> None:
        """Keep what is reached and nobody has kept, or leave it to another gateway that is at it.
        Raises one of AWAY."""
        async with self._engine.begin() as db:
            if not await take_turn(db):
                return
            await db.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"))
            budgeted = await _load_budgeted(db)
            kept: list[BudgetAlert] = []
            for (month, currency), tenants in self._months(budgeted).items():
                chosen = Chosen(
                    since=month.start, until=month.end, tenants=tenants, currency=currency
                )
                spent: dict[str, list[Spent]] = defaultdict(list)
                for each in await sum_spent(db, chosen):
                    spent[each.tenant_id].append(
                        Spent(each.api_key_id, each.model, each.cost_pico, each.unpriced_requests)
                    )
                for name in tenants:
                    reached = crossed(budgeted[name].budgets, spent[name])
                    kept += await keep_alerts(db, reached, month, currency)
        for alert in kept:
            _tell(alert)

    async def send(self) -> None:
        """Hand what is due to the webhook, each at least once; one after another, so that none
        waits in hand behind a slow receiver. Raises one of AWAY."""
        webhook = self._webhook
        if webhook is None:
            return
        for _ in range(SEND_AT_ONCE):
            async with self._engine.begin() as db:
                alert = await take_unsent(db, lease=LEASE)
            if alert is None:
                return
            try:
                await webhook.send(alert)
            except NotTaken as error:
                metrics.DELIVERIES.labels(result="failed").inc()
                logger.warning("budget alert %d: the webhook did not take it (%s)", alert.id, error)
                async with self._engine.begin() as db:
                    await note_refused(db, alert.id, first_wait=self._first_wait)
                continue
            metrics.DELIVERIES.labels(result="taken").inc()
            async with self._engine.begin() as db:
                await note_sent(db, alert.id)

    def _months(self, budgeted: dict[str, _Budgeted]) -> dict[tuple[Month, str], list[str]]:
        """Tenants by the months that are looked at: the one that is, and for a while the last."""
        now = self._now()
        found: dict[tuple[Month, str], list[str]] = defaultdict(list)
        for name, each in budgeted.items():
            for month in {month_of_instant(at, each.time_zone) for at in (now - LATE, now)}:
                found[month, each.currency].append(name)
        return dict(sorted(found.items(), key=lambda item: (item[0][0].start, item[1])))


async def _load_budgeted(db: AsyncConnection) -> dict[str, _Budgeted]:
    """Every tenant that has a budget, or a key with one."""
    found: dict[str, _Budgeted] = {}

    def add(rows: Iterable[tuple[str, str, str, str, str | None]]) -> None:
        for tenant_id, time_zone, currency, limits, key_id in rows:
            try:
                decoded = msgspec.json.decode(limits, type=Limits)
                budgets = list(budgets_of(tenant_id, currency, decoded, api_key_id=key_id))
            except ValueError:  # of a release that knows more
                logger.warning("budget alerts: a budget of tenant %s cannot be read", tenant_id)
                continue
            if budgets:
                found.setdefault(tenant_id, _Budgeted(time_zone, currency)).budgets.extend(budgets)

    of_tenant = (tenant.c.id, tenant.c.time_zone, tenant.c.currency)
    add(
        (*row, None)
        for row in await db.execute(
            select(*of_tenant, cast(tenant.c.limits, Text))
            .where(func.jsonb_path_exists(tenant.c.limits, text(f"'{_HAS_BUDGET}'")))
            .order_by(tenant.c.id)
        )
    )
    add(
        tuple(row)
        for row in await db.execute(
            select(*of_tenant, cast(api_key.c.limits, Text), api_key.c.id)
            .join_from(api_key, tenant)
            .where(func.jsonb_path_exists(api_key.c.limits, text(f"'{_HAS_BUDGET}'")))
            .order_by(api_key.c.tenant_id, api_key.c.id)
        )
    )
    return found


def _tell(alert: BudgetAlert) -> None:
    metrics.ALERTS.labels(threshold=str(alert.threshold_percent)).inc()
    logger.warning(
        "budget alert %d: %d %% of the budget of %s for %s is spent",
        alert.id,
        alert.threshold_percent,
        alert.month,
        whose(alert),
    )

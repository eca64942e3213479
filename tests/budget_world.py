"""A tenant with a budget, its usage and its alerts in a real Postgres, for tests of alerts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from invoice_world import MODEL, InvoiceWorld

from billing.domain.budget_alert import BudgetAlert
from billing.postgres.budget_alerts import list_alerts
from gateway.adapters.alert_webhook import Webhook
from gateway.adapters.budget_watch import BudgetWatch
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Model

ME = "cli:test"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SOON = timedelta(milliseconds=20)


class Budgets:
    """A tenant `acme` whose prompt tokens cost a millionth of a dollar, and its alerts."""

    def __init__(self, world: InvoiceWorld) -> None:
        self.world = world
        self.now = NOW
        self.administration = Administration(world.engine)
        self.watch = self.another()

    def another(self, webhook: Webhook | None = None) -> BudgetWatch:
        """Another gateway's."""
        return BudgetWatch(self.world.engine, webhook, now=lambda: self.now, first_wait=SOON)

    async def spend(self, dollars: str, *, at: datetime | None = None, **changes: Any) -> None:
        """One request that costs so much."""
        tokens = int(float(dollars) * 1_000_000)
        counts = {"prompt_tokens": tokens, "cached_prompt_tokens": 0, "output_tokens": 0}
        when = (at or self.now - timedelta(minutes=1)).isoformat()
        await self.world.use(when, **{"api_key_id": "key", **counts, **changes})

    async def limit(self, budget: str | None, **more: Any) -> None:
        """Set the tenant's budget."""
        limits = {"monthly_budget": budget, **more}
        await self.administration.change_tenant_limits(ME, "acme", limits)

    async def judged(self) -> list[BudgetAlert]:
        """All alerts once a gateway has looked, the first first."""
        await self.watch.judge()
        found: list[BudgetAlert] = await self.world.read(list_alerts, limit=100)
        return found[::-1]

    async def thresholds(self) -> list[tuple[int, int]]:
        """Of each alert, the percent and the limit in dollars."""
        return [(each.threshold_percent, each.limit_pico // 10**12) for each in await self.judged()]


@asynccontextmanager
async def budget_world(database_url: str) -> AsyncIterator[Budgets]:
    """With a budget of 10 dollars."""
    world = InvoiceWorld(async_engine(database_url))
    await world.open()
    made = Budgets(world)
    await made.administration.register_model(
        ME, Model(id=MODEL, context_tokens=2048, max_output_tokens=512)
    )
    await made.administration.create_tenant(ME, "acme", "Acme")
    await made.limit("10.00")
    yield made
    await world.engine.dispose()

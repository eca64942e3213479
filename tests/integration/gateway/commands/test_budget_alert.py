"""`weir budget-alert list`."""

import asyncio
from datetime import UTC, datetime

from weir_command import Weir

from billing.domain.budget_alert import Budget, Crossed
from billing.domain.invoicing.periods import month_of_instant
from billing.postgres.budget_alerts import keep_alerts
from gateway.adapters.postgres import async_engine

NOVEMBER = month_of_instant(datetime(2026, 11, 15, tzinfo=UTC), "UTC")


def keep(url: str) -> None:
    """Both thresholds of a tenant."""

    async def run() -> None:
        engine = async_engine(url, pooled=False)
        budget = Budget("acme", None, None, 10 * 10**12)
        async with engine.begin() as db:
            made = [Crossed(budget, percent, 12 * 10**12, 0) for percent in (80, 100)]
            await keep_alerts(db, made, NOVEMBER, "USD")
        await engine.dispose()

    asyncio.run(run())


def test_alerts_are_a_table_or_json(weir: Weir, database_url: str) -> None:
    """A line each, the latest first; in pages; of a tenant."""
    keep(database_url)
    lines = weir.ok("budget-alert", "list").splitlines()
    assert [line.split()[1:] for line in lines[1:]] == [
        ["acme", "-", "-", "2026-11", percent, "12.00", "10.00", "USD"] for percent in ("100", "80")
    ]
    page = weir.json("budget-alert", "list", "--tenant", "acme", "--limit", "1")
    assert [item["threshold_percent"] for item in page["items"]] == [100]
    rest = weir.json("budget-alert", "list", "--cursor", page["next_cursor"])
    assert [item["threshold_percent"] for item in rest["items"]] == [80]
    assert weir.json("budget-alert", "list", "--tenant", "globex")["items"] == []

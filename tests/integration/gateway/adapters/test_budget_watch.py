"""Alerts about budgets, on a real Postgres."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from budget_world import ME, Budgets, budget_world
from invoice_world import MODEL
from prometheus_client import REGISTRY

from gateway.domain.tenant import RequestClass


@pytest.fixture
async def budgets(database_url: str) -> AsyncIterator[Budgets]:
    """With a budget of 10 dollars."""
    async with budget_world(database_url) as made:
        yield made


def counted(threshold: int) -> float:
    """What the metric says."""
    labels = {"threshold": str(threshold)}
    return REGISTRY.get_sample_value("weir_budget_alerts_total", labels) or 0


async def test_each_threshold_is_told_once(
    budgets: Budgets, caplog: pytest.LogCaptureFixture
) -> None:
    """At 80 percent to the pico, at 100 when that comes; by however many gateways and however
    often they begin anew, from roll-ups or before there are any."""
    before = [counted(80), counted(100)]
    await budgets.spend("7.999999")
    assert await budgets.judged() == []
    await budgets.spend("0.000001", api_key_id="another")
    with caplog.at_level(logging.WARNING, logger="gateway.adapters.budget_watch"):
        await asyncio.gather(*(budgets.another().judge() for _ in range(5)))
    (alert,) = await budgets.judged()
    assert (alert.tenant_id, alert.api_key_id, alert.model) == ("acme", None, None)
    assert (alert.threshold_percent, alert.month, alert.currency) == (80, "2026-11", "USD")
    assert (alert.limit_pico, alert.spent_pico) == (10 * 10**12, 8 * 10**12)
    assert alert.period_start == datetime(2026, 11, 1, tzinfo=UTC)
    assert alert.period_end == datetime(2026, 12, 1, tzinfo=UTC)
    assert [record.getMessage() for record in caplog.records] == [
        f"budget alert {alert.id}: 80 % of the budget of 2026-11 for tenant acme is spent"
    ]
    await budgets.world.roll_up()
    await budgets.spend("5")
    await asyncio.gather(*(budgets.another().judge() for _ in range(5)))
    assert await budgets.thresholds() == [(80, 10), (100, 10)]
    assert [counted(80), counted(100)] == [before[0] + 1, before[1] + 1]


async def test_both_at_once_come_in_order(budgets: Budgets) -> None:
    """From nothing to 120 percent: 80, then 100, each with what was spent."""
    await budgets.spend("12")
    found = await budgets.judged()
    assert [(each.threshold_percent, each.spent_pico) for each in found] == [
        (80, 12 * 10**12), (100, 12 * 10**12),
    ]  # fmt: skip


async def test_a_limit_that_is_changed_is_another(budgets: Budgets) -> None:
    """Raised, and it has room again until that is spent; lowered, and what it is over is told at
    once; the first again, and it was told; taken away (B04), and there is nothing to tell."""
    await budgets.spend("9")
    assert await budgets.thresholds() == [(80, 10)]
    await budgets.limit("20.00")
    assert await budgets.thresholds() == [(80, 10)]
    await budgets.spend("8")
    assert await budgets.thresholds() == [(80, 10), (80, 20)]
    await budgets.limit("15.00")
    assert await budgets.thresholds() == [(80, 10), (80, 20), (80, 15), (100, 15)]
    await budgets.limit("20.00")
    await budgets.limit(None)
    await budgets.spend("100")
    assert len(await budgets.judged()) == 4
    await budgets.limit("10.00")
    assert (await budgets.thresholds())[4:] == [(100, 10)]


async def test_a_budget_of_0_is_no_alarm_by_itself(budgets: Budgets) -> None:
    """Only where something came through, or had before."""
    await budgets.limit("0.00")
    assert await budgets.judged() == []
    await budgets.spend("0.000001")
    assert await budgets.thresholds() == [(80, 0), (100, 0)]


async def test_a_budget_is_of_its_calendar_month(budgets: Budgets) -> None:
    """B02, B03: what other months cost counts for nothing; what this one cost before the budget was
    set does; the next month begins at 0 and is told for itself."""
    await budgets.limit(None)
    await budgets.spend("50", at=datetime(2026, 10, 31, 23, 59, tzinfo=UTC))
    await budgets.spend("8", at=datetime(2026, 11, 1, tzinfo=UTC))
    await budgets.limit("10.00")
    assert await budgets.thresholds() == [(80, 10)]
    budgets.now = datetime(2026, 12, 3, tzinfo=UTC)
    assert len(await budgets.judged()) == 1
    await budgets.spend("8.5")
    assert [each.month for each in await budgets.judged()] == ["2026-11", "2026-12"]


async def test_months_are_those_of_the_tenants_zone(budgets: Budgets) -> None:
    """And what ended one in its last minute is told in the first of the next, not weeks later."""
    await budgets.administration.update_tenant(ME, "acme", time_zone="Asia/Kathmandu")
    end = datetime(2026, 11, 30, 18, 15, tzinfo=UTC)
    await budgets.spend("9", at=end - timedelta(seconds=1))
    await budgets.spend("1", at=end)
    budgets.now = end + timedelta(minutes=6)
    assert await budgets.judged() == []
    budgets.now = end + timedelta(minutes=2)
    (alert,) = await budgets.judged()
    assert (alert.month, alert.period_end, alert.spent_pico) == ("2026-11", end, 9 * 10**12)


async def test_a_change_of_the_zone_tells_nothing_again(budgets: Budgets) -> None:
    """The month is the same one by its name, whatever its bounds; the next is told for itself."""
    await budgets.spend("9")
    assert await budgets.thresholds() == [(80, 10)]
    for zone in ("Asia/Kathmandu", "America/Los_Angeles", "UTC"):
        await budgets.administration.update_tenant(ME, "acme", time_zone=zone)
        assert await budgets.thresholds() == [(80, 10)]
    await budgets.spend("1")
    await budgets.administration.update_tenant(ME, "acme", time_zone="Asia/Kathmandu")
    assert await budgets.thresholds() == [(80, 10), (100, 10)]
    budgets.now = datetime(2026, 12, 3, tzinfo=UTC)
    await budgets.spend("8")
    assert [each.month for each in (await budgets.judged())[2:]] == ["2026-12"]


async def test_keys_and_models_have_budgets_of_their_own(budgets: Budgets) -> None:
    """Each is told with whose it is, and counts its own requests alone; revoked or not."""
    await budgets.limit(None, models={MODEL: {"monthly_budget": "3.00"}})
    created, _ = await budgets.administration.create_key(
        ME, "acme", "first", RequestClass.INTERACTIVE
    )
    key = created.id
    await budgets.administration.change_key_limits(ME, key, {"monthly_budget": "2.00"})
    await budgets.spend("1.5", api_key_id="another")
    await budgets.spend("1.7", api_key_id=key)
    await budgets.administration.revoke_key(ME, key)
    assert [
        (each.api_key_id, each.model, each.threshold_percent, each.spent_pico)
        for each in await budgets.judged()
    ] == [
        (None, MODEL, 80, 3_200_000_000_000),
        (None, MODEL, 100, 3_200_000_000_000),
        (key, None, 80, 1_700_000_000_000),
    ]


async def test_what_is_in_no_amount_is_said(budgets: Budgets) -> None:
    """Other currencies are other money; what has no price is counted beside the amount (B20), and
    never passes for 0."""
    await budgets.spend("100", currency="EUR")
    await budgets.spend("100", model="unpriced")
    await budgets.spend("100", model="unpriced", billable=False)
    assert await budgets.judged() == []
    await budgets.spend("8")
    (alert,) = await budgets.judged()
    assert (alert.spent_pico, alert.unpriced_requests) == (8 * 10**12, 1)

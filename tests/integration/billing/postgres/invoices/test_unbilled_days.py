"""What no invoice has is the same by days and by their quarters."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from invoice_world import InvoiceWorld, billed

from billing.domain.invoicing.issuing import Override
from billing.domain.invoicing.periods import month
from billing.postgres.invoice_scope import Scope
from billing.postgres.unbilled import Unbilled, load_unbilled

FIRST = datetime(2026, 1, 29, 12, tzinfo=UTC)
ALL_MARKED = """INSERT INTO usage_rollup_day_dirty (start, tenant_id)
    SELECT DISTINCT usage_day(bucket), tenant_id FROM usage_rollup ON CONFLICT DO NOTHING"""


async def use_some(
    world: InvoiceWorld, chance: random.Random, currencies: Sequence[str | None]
) -> None:
    """Around the turns of two months."""
    for _ in range(chance.randint(5, 15)):
        at = FIRST + timedelta(minutes=chance.randint(0, 40 * 24 * 60))
        if chance.random() < 0.6:
            at = datetime(2026, chance.choice((2, 3)), 1, tzinfo=UTC)
            at += timedelta(minutes=chance.randint(-1500, 1500))
        await world.use(
            at.isoformat(),
            currency=chance.choice(currencies),
            billable=chance.random() < 0.9,
            final=chance.random() < 0.9,
        )


async def both(world: InvoiceWorld, scope: Scope) -> tuple[list[Unbilled], list[Unbilled]]:
    """By days as far as they are made, and by quarters alone."""
    by_days = await world.read(load_unbilled, scope)
    async with world.engine.connect() as db:
        await db.begin()
        await db.exec_driver_sql(ALL_MARKED)
        return by_days, await load_unbilled(db, scope)


@pytest.mark.parametrize("seed", range(4))
async def test_days_and_quarters_say_the_same(world: InvoiceWorld, seed: int) -> None:
    """Months of zones whose days begin in the middle of UTC's, days made and not made; some are
    invoiced in one currency, with late records, some have records of no currency."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    await world.price(currency="EUR", input_pico=3)
    is_issued = seed % 2 == 0
    currencies = ("USD", "USD", "EUR") if is_issued else ("USD", "EUR", None)
    found = 0
    for _ in range(5):
        zone = chance.choice(("UTC", "Asia/Kathmandu", "America/St_Johns"))
        whom = billed(time_zone=zone)
        await use_some(world, chance, currencies)
        await world.roll_up(coarser=chance.random() < 0.8)
        if is_issued and chance.random() < 0.6:
            drafted = await world.draft(chance.choice(("2026-01", "2026-02")), whom)
            override = Override(reason="a test") if drafted.blockers else None
            await world.issue(
                drafted.invoice.id, whom, expected=drafted.blockers, override=override
            )
        for name in ("2026-01", "2026-02", "2026-03"):
            scope = Scope("acme", chance.choice(("USD", "EUR")), month(name, zone))
            by_days, by_quarters = await both(world, scope)
            assert by_days == by_quarters, (scope, zone)
            found += len(by_days)
    assert found


async def test_a_day_that_is_on_no_invoice_is_not_read_by_quarters(world: InvoiceWorld) -> None:
    """And neither is one that is wholly on one: quarters that are wrong show only where the day is
    on an invoice in part."""
    await world.use_all(["2026-01-05T12:00:00Z", "2026-02-05T12:00:00Z"])
    await world.roll_up()
    scope = Scope("acme", "USD", month("2026-03", "UTC"))
    await world.sql(
        "ALTER TABLE usage_rollup DISABLE TRIGGER USER",
        "UPDATE usage_rollup SET requests = 50",
        "ALTER TABLE usage_rollup ENABLE TRIGGER USER",
    )
    found = await world.read(load_unbilled, scope)
    assert [(each.month, each.requests) for each in found] == [("2026-01", 1), ("2026-02", 1)]
    await world.sql(ALL_MARKED)
    found = await world.read(load_unbilled, scope)
    assert [(each.month, each.requests) for each in found] == [("2026-01", 50), ("2026-02", 50)]

"""Records that come after their month's invoice: on the next one, once, under their own month."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from invoice_rows import UsedRow, groups_of, placed, rate_row
from invoice_world import MODEL, InvoiceWorld, billed
from usage_examples import a_record, an_admission

from billing.domain.invoicing.issuing import IssueRefused, Obstacle, Override
from billing.domain.invoicing.lines import lines_of
from billing.domain.invoicing.periods import month, next_month
from billing.domain.invoicing.usage_group import LineKind
from billing.domain.rating import rated
from billing.postgres.invoice_issue import issue_invoice
from billing.postgres.invoice_rows import sum_rows
from billing.postgres.invoice_scope import Scope, find_late
from billing.postgres.invoices import load_document

NOT_FINAL = Override(reason="provisional ones come later")


async def shown(world: InvoiceWorld, invoice_id: Any) -> list[tuple[str, str, int]]:
    """Kind, month and quantity of its lines for prompt tokens."""
    document = await world.read(load_document, invoice_id)
    return [
        (line.kind, line.month, line.quantity)
        for line in document.lines
        if line.unit == "input_tokens"
    ]


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_a_late_row_is_on_the_next_invoice(world: InvoiceWorld, is_rolled_up: bool) -> None:
    """As an adjustment that names its month, whether its roll-up was made meanwhile or not, and on
    no other; an earlier month that was never invoiced keeps its rows."""
    await world.use("2026-01-05T00:00:00Z")
    await world.roll_up()
    january = (await world.close("2026-01")).invoice
    await world.use("2025-12-05T00:00:00Z")
    await world.use("2026-01-05T00:01:00Z", prompt_tokens=100)
    await world.use("2026-01-31T23:59:59.999Z", prompt_tokens=200)
    await world.use("2026-02-03T00:00:00Z")
    if is_rolled_up:
        await world.roll_up()
    february = (await world.close("2026-02")).invoice
    assert await shown(world, february.id) == [
        (LineKind.USAGE, "2026-02", 8),
        (LineKind.ADJUSTMENT, "2026-01", 292),
    ]
    assert (await world.draft("2026-01")).invoice == january
    march = (await world.close("2026-03")).invoice
    assert march.row_count == 0
    assert (await world.close("2025-12")).invoice.row_count == 1


async def test_a_row_that_becomes_final_is_late(world: InvoiceWorld) -> None:
    """It was no part of the month's invoice, which was issued over it."""
    await world.use("2026-01-05T00:00:00Z")
    january = (await world.close("2026-01")).invoice
    record = await world.use("2026-01-06T00:00:00Z", final=False)
    assert (await world.draft("2026-02")).invoice.row_count == 0
    await world.sql(
        "UPDATE usage_record SET final = true WHERE request_id = :id", id=record.request_id
    )
    assert (await world.close("2026-02")).invoice.row_count == 1
    assert january.row_count == 1


async def test_a_late_row_without_a_price_holds_up_the_next(world: InvoiceWorld) -> None:
    """And is on it once it is priced."""
    await world.use("2026-01-05T00:00:00Z")
    await world.close("2026-01")
    late = rated(
        a_record(an_admission(1_767_571_200_000 + 86_400_000), model="new"), world.book, "USD"
    )
    await world.ship([late])
    draft = await world.draft("2026-02")
    with pytest.raises(IssueRefused) as refused:
        await world.issue(draft.invoice.id)
    assert [each.obstacle for each in refused.value.blockers] == [Obstacle.UNPRICED]
    written = await world.price(model="new")
    await world.sql(
        "UPDATE usage_record SET price_id = :price, cost_pico = 88400000,"
        " list_cost_pico = 88400000 WHERE model = 'new'",
        price=written.id,
    )
    assert (await world.issue(draft.invoice.id)).invoice.row_count == 1


async def test_a_void_month_takes_its_late_rows_too(world: InvoiceWorld) -> None:
    """After a void, the month's rows and what came late are free for its next invoice."""
    await world.use("2026-01-05T00:00:00Z")
    first = (await world.close("2026-01")).invoice
    await world.use("2026-01-06T00:00:00Z")
    await world.void(first.id)
    assert (await world.close("2026-02")).invoice.row_count == 0
    assert (await world.close("2026-01")).invoice.row_count == 2


async def test_a_late_row_of_a_month_of_another_zone(world: InvoiceWorld) -> None:
    """The invoice was printed for it, though by the time zone of now it is of a month before, which
    nobody drafts: it is on the next invoice, once."""
    tokyo, los_angeles = billed(time_zone="Asia/Tokyo"), billed(time_zone="America/Los_Angeles")
    await world.use("2026-01-05T00:00:00Z")
    await world.close("2026-01", tokyo)
    await world.use("2025-12-31T20:00:00Z", prompt_tokens=100)
    await world.roll_up()
    february = (await world.close("2026-02", los_angeles)).invoice
    assert await shown(world, february.id) == [(LineKind.ADJUSTMENT, "2026-01", 100 - 4)]
    assert (await world.close("2026-03", los_angeles)).invoice.row_count == 0
    assert (await world.close("2025-12", los_angeles)).invoice.row_count == 0


async def test_quarters_that_are_whole_are_not_looked_at(world: InvoiceWorld) -> None:
    """A year of issued months costs its counts: only quarters with something late are read."""
    await world.use_all([f"2026-01-{day:02d}T00:00:00Z" for day in range(1, 29)])
    await world.roll_up()
    await world.close("2026-01")
    scope = Scope("acme", "USD", month("2026-02", "UTC"))
    assert await world.read(find_late, scope) == []
    await world.use("2026-01-07T12:01:00Z")
    await world.roll_up()
    (late,) = await world.read(find_late, scope)
    assert (late.bucket, late.month) == (datetime(2026, 1, 7, 12, tzinfo=UTC), "2026-01")


async def test_a_record_that_left_hides_no_late_one(world: InvoiceWorld) -> None:
    """One that was invoiced is made unbillable behind the guards' back, and another of its quarter
    comes late: as many as before, and the late one is on the next invoice all the same."""
    first = await world.use("2026-01-05T00:00:00Z")
    await world.close("2026-01")
    await world.sql(
        "ALTER TABLE usage_record DISABLE TRIGGER usage_record_is_invoiced_update",
        "UPDATE usage_record SET billable = false WHERE request_id = :id",
        id=first.request_id,
    )
    await world.use("2026-01-05T00:01:00Z", output_tokens=first.output_tokens + 1)
    await world.roll_up()
    assert (await world.close("2026-02")).invoice.row_count == 1


class Told(UsedRow, kw_only=True):
    """A row with its own record's price, as the specification sees it."""


@pytest.mark.parametrize("seed", range(4))
async def test_postgres_chooses_as_the_rule_does(world: InvoiceWorld, seed: int) -> None:
    """V02, V06, V10: what each month's invoice would have, and has, after anything: shipments
    around month ends, issues, voids, another time zone; the specification looks at row after
    row."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    await world.price(model="m2", request_pico=500, reasoning_pico=9_000_000)
    zones = ("UTC", "Europe/Budapest", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Chatham")
    names = ("2025-12", "2026-01", "2026-02", "2026-03")
    rows: list[Told] = []
    issued: dict[str, Any] = {}
    zone = chance.choice(zones)
    for _ in range(30):
        action = chance.random()
        if action < 0.55:
            rows += await _shipped(world, chance, zone, names)
        elif action < 0.65:
            await world.roll_up()
        elif action < 0.72:
            zone = chance.choice(zones)
        elif action < 0.80 and issued:
            name = chance.choice(sorted(issued))
            made = issued.pop(name)
            await world.void(made.id)
            for row in rows:
                if row.invoice == str(made.id):
                    row.invoice = None
        else:
            name = chance.choice(names)
            if name not in issued:
                whom = billed(time_zone=zone)
                found = _placed(rows, name, zone, issued)
                draft = (await world.draft(name, whom)).invoice
                made = (await world.issue(draft.id, whom, override=NOT_FINAL)).invoice
                document = await world.read(load_document, made.id)
                assert document.lines == lines_of(groups_of(found), "USD", whom.tax)
                assert made.row_count == len(found)
                issued[name] = made
                for row, _ in found:
                    row.invoice = str(made.id)
        for name in names:
            if name in issued:
                continue
            scope = Scope("acme", "USD", month(name, zone))
            groups = (await world.read(sum_rows, scope)).groups
            wanted = groups_of(_placed(rows, name, zone, issued))
            tax = billed().tax
            assert lines_of(groups, "USD", tax) == lines_of(wanted, "USD", tax), (seed, name)
            assert sum(group.requests for group in groups) == len(wanted)


def _placed(rows: Sequence[Told], name: str, zone: str, issued: dict[str, Any]) -> Any:
    return placed(
        rows,
        period=month(name, zone),
        invoiced=issued.keys(),
        printed=sorted((each.period for each in issued.values()), key=lambda each: each.start),
        tenant_id="acme",
        currency="USD",
    )


async def _shipped(
    world: InvoiceWorld, chance: random.Random, zone: str, names: Sequence[str]
) -> list[Told]:
    """Some rows, half of them around a month's end, as one shipment."""
    records, told = [], []
    for _ in range(chance.randint(1, 6)):
        period = month(chance.choice(names), zone)
        edge = chance.choice((period.start, period.end, next_month(period).end))
        at = edge + timedelta(milliseconds=chance.choice((-1, 0, 1, -3_600_000, 40_000_000)))
        values: dict[str, Any] = {
            "tenant_id": chance.choice(("acme", "acme", "acme", "other")),
            "model": chance.choice((MODEL, "m2")),
            "request_class": chance.choice(("interactive", "batch")),
            "prompt_tokens": chance.randint(0, 50),
            "output_tokens": chance.randint(0, 50),
            "billable": chance.random() < 0.8,
            "final": chance.random() < 0.9,
        }
        values["cached_prompt_tokens"] = chance.randint(0, values["prompt_tokens"])
        values["reasoning_tokens"] = chance.randint(0, values["output_tokens"] + 5)
        currency = chance.choice(("USD", "USD", "USD", "EUR"))
        instant_ms = round(at.timestamp() * 1000)
        record = a_record(an_admission(instant_ms), **values)
        records.append(rated(record, world.book, currency))
        told.append(rate_row(Told(admitted_at=at, currency=currency, **values), world.book))
    await world.ship(records)
    return told


async def test_shipping_waits_for_no_invoice(world: InvoiceWorld) -> None:
    """What is shipped while an invoice is issued is stored at once, and is late; whoever drafts the
    tenant's next month meanwhile waits until then, and has it."""
    await world.use("2026-01-05T00:00:00Z")
    draft = (await world.draft("2026-01")).invoice
    async with world.engine.begin() as issuing:
        issued = await issue_invoice(issuing, draft.id, billed(), expected=[], by="fin")
        async with asyncio.timeout(5):
            await world.use("2026-01-05T00:00:01Z", prompt_tokens=100)
            await world.use("2026-02-05T00:00:00Z")
        next_one = asyncio.create_task(world.draft("2026-02"))
        other = await world.draft("2026-01", billed("other"))
        assert not next_one.done()
    assert (issued.invoice.row_count, other.invoice.row_count) == (1, 0)
    assert await shown(world, (await next_one).invoice.id) == [
        (LineKind.USAGE, "2026-02", 8),
        (LineKind.ADJUSTMENT, "2026-01", 96),
    ]

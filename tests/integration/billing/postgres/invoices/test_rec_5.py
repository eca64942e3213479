"""REC-5: invoices beside the records that they cover. Whatever is changed behind the guards' back
is found, by name."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from invoice_world import InvoiceWorld, billed

from billing.domain.reconciliation.invoices import check_invoices
from billing.postgres.invoices import StoredInvoice
from billing.postgres.reconcile_invoices import load_invoiced

JANUARY = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
TABLES = ("invoice", "invoice_line", "invoice_row", "invoice_quarter", "invoice_number")
MORE = (
    "UPDATE invoice_line SET quantity = quantity + 2,"
    " amount_pico = amount_pico + 2 * unit_price_pico WHERE position = 3"
)
Found = list[tuple[str, UUID | None, int, str]]


async def findings(world: InvoiceWorld) -> Found:
    """Subject, request, size and unit of each."""
    verdict = check_invoices(await world.read(load_invoiced, *JANUARY))
    return [(each.subject, each.request_id, each.size, each.unit) for each in verdict.findings]


async def behind_the_guards(world: InvoiceWorld, *statements: str, **values: object) -> None:
    """As somebody may who owns the database."""
    await world.sql(
        *(f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in (*TABLES, "usage_record")),
        *statements,
        **values,
    )


async def an_invoice(world: InvoiceWorld) -> StoredInvoice:
    """Of two requests, with a late one of an invoice before."""
    await world.use("2026-01-05T00:00:00Z")
    await world.roll_up()
    await world.close("2026-01")
    await world.use("2026-01-06T00:00:00Z", reasoning_tokens=5)
    await world.use("2026-02-06T00:00:00Z")
    return (await world.close("2026-02")).invoice


async def test_invoices_are_their_records(world: InvoiceWorld) -> None:
    """Nothing is found; what waits for the next invoice is a term, a void invoice is none."""
    assert await world.read(load_invoiced, *JANUARY) is None
    february = await an_invoice(world)
    late = await world.use("2026-01-07T00:00:00Z")
    await world.use("2026-01-07T00:00:00Z", tenant_id="other")
    await world.roll_up()
    found = await world.read(load_invoiced, *JANUARY)
    assert check_invoices(found).ok
    assert (found.invoices, found.requests, found.late) == (2, 2, 1)
    await world.void(february.id)
    found = await world.read(load_invoiced, *JANUARY)
    assert check_invoices(found).ok
    assert (found.invoices, found.requests, found.late) == (1, 1, 2)
    march = (await world.close("2026-03")).invoice
    assert march.row_count == 2
    assert late.cost_pico is not None
    assert await findings(world) == []


async def test_what_is_on_no_invoice_is_a_term(world: InvoiceWorld) -> None:
    """By its age: of a month that may still be drafted, and of one that somebody forgot; another
    currency's too. Once invoiced it is none."""
    await an_invoice(world)
    await world.use("2026-01-07T00:00:00Z", currency="EUR")
    await world.use("2026-01-08T00:00:00Z", tenant_id="other")
    await world.use("2026-04-07T00:00:00Z")
    await world.roll_up()

    async def waiting(since: datetime, until: datetime) -> tuple[int, int]:
        found = await world.read(load_invoiced, since, until)
        assert check_invoices(found).ok
        return found.to_bill, found.unbilled

    assert await waiting(*JANUARY) == (0, 2)
    assert await waiting(JANUARY[1], datetime(2026, 5, 1, tzinfo=UTC)) == (0, 1)
    await world.close("2026-01", billed("other"))
    assert await waiting(*JANUARY) == (0, 1)
    now = datetime.now(UTC)
    await world.use(now.isoformat())
    await world.roll_up()
    assert await waiting(now - timedelta(hours=1), now + timedelta(hours=1)) == (1, 0)


async def test_a_record_that_was_changed(world: InvoiceWorld) -> None:
    """By hand, by one token: the invoice's quarter is named, with both counts."""
    invoice = await an_invoice(world)
    await behind_the_guards(
        world, "UPDATE usage_record SET output_tokens = 21 WHERE admitted_at = '2026-01-06Z'"
    )
    assert await findings(world) == [
        (
            f"invoice {invoice.number}, 2026-01-06T00:00Z smollm2-135m self interactive price 1",
            None,
            1,
            "tokens",
        )
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM usage_record WHERE request_id = :id",
        "UPDATE usage_record SET billable = false WHERE request_id = :id",
        "UPDATE usage_record SET tenant_id = 'other' WHERE request_id = :id",
        "UPDATE usage_record SET final = false WHERE request_id = :id",
        "UPDATE usage_record SET currency = 'EUR' WHERE request_id = :id",
    ],
)
async def test_a_record_that_is_no_longer_billed(world: InvoiceWorld, statement: str) -> None:
    """The request is named, and the invoice that it is on."""
    record = await world.use("2026-01-05T00:00:00Z")
    invoice = (await world.close("2026-01")).invoice
    await behind_the_guards(world, statement, id=record.request_id)
    found = await findings(world)
    assert (f"invoice {invoice.number}", record.request_id, 1, "requests") in found


@pytest.mark.parametrize(
    ("statement", "size", "unit"),
    [
        (MORE, 2, "output_tokens"),
        ("DELETE FROM invoice_line WHERE position = 3", 20, "output_tokens"),
        ("DELETE FROM invoice_row", 12, "tokens"),
        ("UPDATE invoice_quarter SET requests = requests + 1", 1, "requests"),
        ("UPDATE invoice SET document = document || ' '", 1, "documents"),
        ("UPDATE invoice_number SET last = last + 4", 4, "documents"),
        ("UPDATE invoice SET subtotal_minor = 7, total_minor = 7", 7, "USD"),
    ],
)  # fmt: skip
async def test_an_invoice_that_was_changed(
    world: InvoiceWorld, statement: str, size: int, unit: str
) -> None:
    """Its lines, its rows, its document, its number and its total."""
    await world.use("2026-01-05T00:00:00Z")
    await world.close("2026-01", billed())
    await behind_the_guards(world, statement)
    assert (size, unit) in [(each[2], each[3]) for each in await findings(world)]

"""Payments, prices and alerts of the release before in a database of this one, and back.

What that release sent is frozen here.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from invoice_world import InvoiceWorld
from settled_by_hand import PAID, pay_by_hand
from sqlalchemy import text

from billing.domain.invoicing.issuing import Blocker
from billing.domain.invoicing.lifecycle import Status
from billing.domain.price_book import PRICE_PICO_MAX
from billing.postgres import invoice_draft, invoice_issue
from billing.postgres.invoices import list_payments, load_invoice
from gateway.adapters.postgres import async_engine
from gateway.migrate import MigrationFailed, downgrade, upgrade

BEFORE = "0017"
OLD_LOCK = "SELECT invoice.id FROM invoice WHERE invoice.id = :id FOR UPDATE"
OLD_PAY = (
    "INSERT INTO payment (invoice_id, amount_minor, received_on, reference, noted_by)"
    " VALUES (:id, :minor, now()::date, :reference, 'old')"
)
OLD_PAID = "UPDATE invoice SET status = 'paid', paid_at = now() WHERE id = :id"
SELLER_SAYS = "UPDATE seller SET details = details || '{}'"
OLD_SUMS = (
    "SELECT (SELECT coalesce(sum(payment.amount_minor), 0) FROM payment"
    " WHERE payment.invoice_id = invoice.id), status FROM invoice"
)
OLD_ALERT = """
INSERT INTO budget_alert (tenant_id, month, period_start, period_end, currency, threshold_percent,
    limit_pico, spent_pico, unpriced_requests)
VALUES ('acme', '2026-11', '2026-11-01Z', cast(:until AS text)::timestamptz, 'USD', 80, 10, 9, 0)
ON CONFLICT DO NOTHING"""
WAITS_FOR = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = CAST(:table AS text)::regclass"
DEAR = """
INSERT INTO price_entry (model, provider, currency, input_pico, output_pico, effective_from)
VALUES ('m', 'self', 'VND', 1, :pico,
    date_trunc('milliseconds', clock_timestamp()) + interval '1 hour')"""


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[InvoiceWorld]:
    """A database with a seller and one price."""
    made = InvoiceWorld(async_engine(database_url, pooled=False))
    await made.open()
    yield made
    await made.engine.dispose()


async def an_invoice(world: InvoiceWorld) -> Any:
    """Of 4.00."""
    await world.use(
        "2026-01-05T00:00:00Z", prompt_tokens=0, cached_prompt_tokens=0, output_tokens=1_000_000
    )
    return (await world.close("2026-01")).invoice


async def pay_as_before(world: InvoiceWorld, invoice: Any, minor: int, reference: str) -> None:
    """As that release notes a payment that settles an invoice."""
    async with world.engine.begin() as db:
        of = {"id": invoice.id}
        await db.execute(text(OLD_LOCK), of)
        await db.execute(text(OLD_PAY), {**of, "minor": minor, "reference": reference})
        await db.execute(text(OLD_PAID), of)


async def test_the_release_before_settles_invoices(world: InvoiceWorld) -> None:
    """What it writes is right by this release's rules; of what was taken back it has the right
    sums, and it goes on from there."""
    invoice = await an_invoice(world)
    await pay_as_before(world, invoice, 400, "one")
    assert (await world.read(load_invoice, invoice.id)).status is Status.PAID
    await world.take_back(invoice.id, "one")
    assert await world.query(OLD_SUMS) == [(0, "issued")]
    await pay_as_before(world, invoice, 400, "two")
    assert await world.query(OLD_SUMS) == [(400, "paid")]
    found = await world.read(list_payments, invoice.id)
    assert [(each.amount_minor, each.overpays, each.reason) for each in found] == [
        (400, False, None), (-400, False, "of another customer"), (400, False, None),
    ]  # fmt: skip


async def test_what_was_there_stays(world: InvoiceWorld, database_url: str) -> None:
    """Invoices and payments of before are guarded, and can be taken back; there and back again they
    are the same. Once one is taken back, or too much, there is no way back."""
    invoice = await an_invoice(world)
    await downgrade(database_url, BEFORE)
    await pay_as_before(world, invoice, 400, "one")
    before = await world.query("SELECT invoice.* FROM invoice")
    await upgrade(database_url)
    await downgrade(database_url, BEFORE)
    assert await world.query("SELECT invoice.* FROM invoice") == before
    await upgrade(database_url)
    assert (await world.take_back(invoice.id, "one")).invoice.status is Status.ISSUED
    with pytest.raises(MigrationFailed, match="payments that the release before"):
        await downgrade(database_url, BEFORE)


async def test_too_much_does_not_go_back(world: InvoiceWorld, database_url: str) -> None:
    """The release before would not know why it is more than was owed."""
    await an_invoice(world)
    await world.sql(pay_by_hand(401, overpays=True), PAID)
    with pytest.raises(MigrationFailed, match="payments that the release before"):
        await downgrade(database_url, BEFORE)


async def test_dear_prices_do_not_go_back(world: InvoiceWorld, database_url: str) -> None:
    """One of up to a whole unit a token does; what that release refuses does not."""
    await world.sql(DEAR, pico=10**12)
    await downgrade(database_url, BEFORE)
    await upgrade(database_url)
    await world.price(model="n", currency="VND", output_pico=PRICE_PICO_MAX)
    with pytest.raises(MigrationFailed, match="prices that the release before"):
        await downgrade(database_url, BEFORE)


async def test_alerts_of_before_are_once_a_month(world: InvoiceWorld, database_url: str) -> None:
    """Of those that were told twice, after a change of the zone, the first stays; the release
    before tells none again."""
    await downgrade(database_url, BEFORE)
    for until in ("2026-12-01T00:00Z", "2026-12-01T08:00Z"):
        await world.sql(OLD_ALERT, until=until)
    ((first,), _) = await world.query("SELECT id FROM budget_alert ORDER BY id")
    await upgrade(database_url)
    await world.sql(OLD_ALERT, until="2026-12-01T05:30Z")
    assert await world.query("SELECT id FROM budget_alert") == [(first,)]
    await downgrade(database_url, BEFORE)
    assert await world.query("SELECT id FROM budget_alert") == [(first,)]


@pytest.mark.parametrize(
    ("held", "free"),
    [("budget_alert", ["invoice", "payment", "price_entry"]), ("usage_record", ["price_entry"])],
)
async def test_it_keeps_no_reader_waiting_for_what_takes_long(
    world: InvoiceWorld, database_url: str, held: str, free: list[str]
) -> None:
    """Documents are read before any table is locked against readers, and prices come last: while
    it waits for a table in between, the others are read."""
    await an_invoice(world)
    await downgrade(database_url, BEFORE)
    async with world.engine.connect() as other:
        await other.execute(text(f"LOCK TABLE {held} IN ROW EXCLUSIVE MODE"))
        async with asyncio.TaskGroup() as group:
            group.create_task(upgrade(database_url))
            async with asyncio.timeout(4):
                while not await world.query(WAITS_FOR, table=held):  # noqa: ASYNC110 - SQL
                    await asyncio.sleep(0.01)
            async with world.engine.connect() as reader:
                for table in free:
                    await reader.execute(text(f"LOCK TABLE {table} IN ACCESS SHARE MODE NOWAIT"))
            await other.rollback()
    assert await world.query("SELECT prefix FROM number_prefix ORDER BY 1") == [("CN",), ("INV",)]


async def test_prefixes_of_before_number_what_they_did(
    world: InvoiceWorld, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of invoices, of credit notes, and of sellers whose invoices have none yet. One that the
    release before let number both goes on."""

    async def unchecked(*_: object) -> None:
        """That release asks for no prefixes."""

    async def none_found(*_: object) -> list[Blocker]:
        """It looked by quarters alone, where there is nothing to find here."""
        return []

    first = await an_invoice(world)
    await downgrade(database_url, BEFORE)
    monkeypatch.setattr(invoice_issue, "check_prefixes", unchecked)
    for module in (invoice_draft, invoice_issue):
        monkeypatch.setattr(module, "find_unbilled", none_found)
    await world.sql(SELLER_SAYS.format('{"invoice_prefix": "X", "credit_note_prefix": "XC"}'))
    await world.close("2026-02")
    await world.sql(SELLER_SAYS.format('{"invoice_prefix": "CN", "credit_note_prefix": "KN"}'))
    await world.close("2026-03")
    await world.credit(first.id, (1, 10))
    await upgrade(database_url)
    monkeypatch.undo()
    found = await world.query("SELECT prefix, invoices, credit_notes FROM number_prefix ORDER BY 1")
    assert found == [
        ("CN", True, True), ("INV", True, False), ("KN", False, True), ("X", True, False),
        ("XC", False, True),
    ]  # fmt: skip
    await world.close("2026-04")
    assert (await world.credit(first.id, (1, 10))).credit_note.number.endswith("-000004")
    await downgrade(database_url, BEFORE)

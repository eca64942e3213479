"""Payments, credit notes and voids of issued invoices."""

import asyncio
from uuid import UUID

import pytest
from invoice_world import InvoiceWorld, billed

from billing.domain.invoicing.credit import CreditExceeds, RefusedCredit
from billing.domain.invoicing.lifecycle import RefusedChange, Status
from billing.domain.invoicing.tax import Tax
from billing.postgres.credit_notes import (
    list_credit_notes,
    load_credit_document,
    load_credit_note,
)
from billing.postgres.invoice_settle import PaymentNotFound, ReferenceTaken
from billing.postgres.invoices import (
    InvoiceFilter,
    InvoiceNotFound,
    StoredInvoice,
    list_invoices,
    list_payments,
    load_invoice,
)

TAXED = billed(tax=Tax(rate_milli_percent=19_000, name="VAT"))


async def an_invoice(world: InvoiceWorld, month: str = "2026-01") -> StoredInvoice:
    """1.00 and 4.00, and 0.95 of tax."""
    await world.use(
        f"{month}-05T00:00:00Z",
        prompt_tokens=1_000_000,
        cached_prompt_tokens=0,
        output_tokens=1_000_000,
    )
    return (await world.close(month, TAXED)).invoice


async def test_payments_add_up(world: InvoiceWorld) -> None:
    """In parts, until it is paid; one reference is one payment; never more than is owed."""
    invoice = await an_invoice(world)
    assert invoice.total_minor == 595
    part = await world.pay(invoice.id, 500)
    assert (part.invoice.status, part.invoice.standing.outstanding_minor) == (Status.ISSUED, 95)
    assert not (await world.pay(invoice.id, 500)).is_new
    with pytest.raises(ReferenceTaken):
        await world.pay(invoice.id, 501)
    with pytest.raises(RefusedChange):
        await world.pay(invoice.id, 96, "bank 2")
    paid = await world.pay(invoice.id, 95, "bank 2")
    assert paid.invoice.status is Status.PAID
    assert paid.invoice.paid_at is not None
    with pytest.raises(RefusedChange):
        await world.void(invoice.id)
    payments = await world.read(list_payments, invoice.id)
    assert [(each.amount_minor, each.reference) for each in payments] == [
        (500, "bank 1"),
        (95, "bank 2"),
    ]


async def test_a_payment_is_taken_back(world: InvoiceWorld) -> None:
    """By an entry of its own, once; the invoice is owed again, and can be paid again, or be void
    where nothing was paid. The reference stays taken."""
    invoice = await an_invoice(world)
    await world.pay(invoice.id, 500)
    paid = await world.pay(invoice.id, 95, "bank 2")
    back = await world.take_back(invoice.id, "bank 2")
    assert (back.invoice.status, back.invoice.paid_at) == (Status.ISSUED, None)
    assert back.invoice.standing.outstanding_minor == 95
    assert (back.payment.amount_minor, back.payment.reverses) == (-95, paid.payment.id)
    assert back.payment.reason == "of another customer"
    again = await world.take_back(invoice.id, paid.payment.id)
    assert (again.is_new, again.payment) == (False, back.payment)
    with pytest.raises(ReferenceTaken, match="another reason"):
        await world.take_back(invoice.id, "bank 2", reason="x")
    with pytest.raises(ReferenceTaken, match="was taken back"):
        await world.pay(invoice.id, 95, "bank 2")
    with pytest.raises(RefusedChange, match="note the payment again"):
        await world.take_back(invoice.id, back.payment.id)
    with pytest.raises(PaymentNotFound):
        await world.take_back(invoice.id, "bank 3")
    assert (await world.pay(invoice.id, 95, "bank 3")).invoice.status is Status.PAID
    for reference in ("bank 1", "bank 3"):
        await world.take_back(invoice.id, reference)
    assert (await world.void(invoice.id)).invoice.status is Status.VOID
    assert len(await world.read(list_payments, invoice.id)) == 6


async def test_a_payment_of_too_much_is_kept_apart(world: InvoiceWorld) -> None:
    """Only where it is meant; what is too much is shown, also what a credit note makes so."""
    invoice = await an_invoice(world)
    paid = await world.pay(invoice.id, 600, may_overpay=True)
    assert (paid.payment.overpays, paid.invoice.status) == (True, Status.PAID)
    assert paid.invoice.standing.overpaid_minor == 5
    with pytest.raises(RefusedChange):
        await world.pay(invoice.id, 1, "bank 2")
    twice = await world.pay(invoice.id, 595, "bank 2", may_overpay=True)
    assert twice.invoice.standing.overpaid_minor == 600
    back = await world.take_back(invoice.id, "bank 2")
    assert (back.invoice.status, back.invoice.standing.overpaid_minor) == (Status.PAID, 5)
    credited = await world.credit(invoice.id, (2, 100))
    assert credited.invoice.standing.overpaid_minor == 5 + 119


async def test_credit_notes_cite_lines(world: InvoiceWorld) -> None:
    """V14: each with a number of its own; the last takes the rest of the tax; with all credited
    the invoice is settled. The same reference is the same note."""
    invoice = await an_invoice(world)
    first = await world.credit(invoice.id, (2, 333), reference="a")
    assert first.credit_note.number.startswith("CN-")
    assert (first.credit_note.net_minor, first.credit_note.tax_minor) == (333, 63)
    assert not (await world.credit(invoice.id, (2, 333), reference="a")).is_new
    with pytest.raises(ReferenceTaken):
        await world.credit(invoice.id, (2, 1), reference="a")
    with pytest.raises(CreditExceeds):
        await world.credit(invoice.id, (2, 68))
    rest = await world.credit(invoice.id)
    assert first.credit_note.total_minor + rest.credit_note.total_minor == 595
    assert rest.invoice.status is Status.PAID
    with pytest.raises(RefusedCredit):
        await world.credit(invoice.id)
    notes = await world.read(list_credit_notes, invoice_id=invoice.id)
    assert notes == [rest.credit_note, first.credit_note]
    assert await world.read(list_credit_notes, before=notes[0].id, tenant_id="acme") == notes[1:]
    assert await world.read(load_credit_note, notes[0].id) == notes[0]
    document = await world.read(load_credit_document, first.credit_note.id)
    assert (document.number, document.invoice_number) == (
        first.credit_note.number,
        invoice.number,
    )


async def test_credits_at_once_never_exceed(world: InvoiceWorld) -> None:
    """Ten of 1.00 of a line of 4.00: four."""
    invoice = await an_invoice(world)
    found = await asyncio.gather(
        *(world.credit(invoice.id, (2, 100)) for _ in range(10)), return_exceptions=True
    )
    assert sum(isinstance(each, CreditExceeds) for each in found) == 6
    assert (await world.read(load_invoice, invoice.id)).credited_minor == 476


async def test_a_draft_is_neither_paid_nor_credited(world: InvoiceWorld) -> None:
    """It binds nobody; nor is it made void."""
    await world.use("2026-01-05T00:00:00Z", output_tokens=1_000_000)
    draft = (await world.draft("2026-01")).invoice
    for attempt in (world.pay(draft.id, 1), world.credit(draft.id), world.void(draft.id)):
        with pytest.raises(RefusedChange):
            await attempt


async def test_invoices_are_listed_by_page(world: InvoiceWorld) -> None:
    """The latest first, by tenant, month, currency and status; one that is not there is said."""
    made = [await an_invoice(world, month) for month in ("2026-01", "2026-02", "2026-03")]
    await world.void(made[0].id)
    latest = await world.read(list_invoices, limit=2)
    assert [each.id for each in latest] == [made[2].id, made[1].id]
    rest = await world.read(list_invoices, limit=2, before=latest[-1].id)
    assert [each.id for each in rest] == [made[0].id]
    found = await world.read(list_invoices, InvoiceFilter(status=Status.VOID, tenant_id="acme"))
    assert [each.void_reason for each in found] == ["wrong address"]
    assert await world.read(list_invoices, InvoiceFilter(month="2026-04")) == []
    with pytest.raises(InvoiceNotFound):
        await world.read(load_invoice, UUID(int=7))

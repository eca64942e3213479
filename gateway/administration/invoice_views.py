"""What the finance API and the command line show of invoices, payments and credit notes: money in
texts, instants in UTC."""

from collections.abc import Iterable

import msgspec

from billing.documents.views import line_view, party_view, period_view, tax_view
from billing.domain.invoicing.document import CreditDocument, Document
from billing.domain.invoicing.issuing import Blocker
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.rounding import show_minor
from billing.postgres.credit_notes import StoredCreditNote
from billing.postgres.invoices import StoredInvoice, StoredPayment
from billing.postgres.unbilled import Unbilled
from gateway.administration.views import View


def standing_view(invoice: StoredInvoice) -> View:
    """Where an invoice stands, without its lines."""

    def shown(minor: int) -> str:
        return show_minor(minor, invoice.currency)

    return {
        "id": str(invoice.id),
        "number": invoice.number,
        "status": invoice.status.value,
        "tenant_id": invoice.tenant_id,
        "period": period_view(invoice.period),
        "currency": invoice.currency,
        "subtotal": shown(invoice.subtotal_minor),
        "tax": shown(invoice.tax_minor),
        "total": shown(invoice.total_minor),
        "paid": shown(invoice.paid_minor),
        "credited": shown(invoice.credited_minor),
        "outstanding": shown(invoice.standing.outstanding_minor),
        "overpaid": shown(invoice.standing.overpaid_minor),
        "row_count": invoice.row_count,
        "content_hash": None if invoice.number is None else invoice.content_hash,
        "simulated": invoice.simulated,
        **{
            name: msgspec.to_builtins(getattr(invoice, name))
            for name in (
                *("cut_off", "drafted_at", "drafted_by", "issued_at", "issued_by", "due_on"),
                *("paid_at", "voided_at", "voided_by", "void_reason", "override"),
            )
        },
    }


def invoice_view(
    invoice: StoredInvoice,
    document: Document,
    *,
    blockers: Iterable[Blocker] = (),
    payments: Iterable[StoredPayment] = (),
    credit_notes: Iterable[StoredCreditNote] = (),
    unbilled: Iterable[Unbilled] = (),
) -> View:
    """An invoice with its lines, and what was paid and credited of it. `blockers` are what in its
    records would keep a draft from being issued, `unbilled` what of its tenant, in this month and
    before, neither it nor another invoice has."""
    return {
        **standing_view(invoice),
        "customer": party_view(document.customer),
        "lines": [line_view(line, document.currency) for line in document.lines],
        "taxes": [tax_view(tax, document.currency) for tax in document.totals.taxes],
        "payments": [payment_view(each, invoice.currency) for each in payments],
        "credit_notes": [credit_note_summary(each) for each in credit_notes],
        "blockers": [blocker_view(each) for each in blockers],
        "unbilled": [
            {
                "month": each.month,
                "currency": each.currency,
                "requests": each.requests,
                "billed_by": each.billed_by,
            }
            for each in unbilled
        ],
    }


def payment_view(payment: StoredPayment, currency: str) -> View:
    """A payment that was noted; one that takes another back has an amount below nothing."""
    return {
        "id": str(payment.id),
        "invoice_id": str(payment.invoice_id),
        "amount": show_minor(payment.amount_minor, currency),
        "currency": currency,
        "received_on": msgspec.to_builtins(payment.received_on),
        "reference": payment.reference,
        "noted_at": msgspec.to_builtins(payment.noted_at),
        "noted_by": payment.noted_by,
        "overpays": payment.overpays,
        "reverses": None if payment.reverses is None else str(payment.reverses),
        "reason": payment.reason,
    }


def credit_note_summary(note: StoredCreditNote) -> View:
    """A credit note without its lines."""
    return {
        "id": str(note.id),
        "number": note.number,
        "invoice_id": str(note.invoice_id),
        "tenant_id": note.tenant_id,
        "currency": note.currency,
        "subtotal": show_minor(note.net_minor, note.currency),
        "tax": show_minor(note.tax_minor, note.currency),
        "total": show_minor(note.total_minor, note.currency),
        "reason": note.reason,
        "reference": note.reference,
        "content_hash": note.content_hash,
        "issued_at": msgspec.to_builtins(note.issued_at),
        "issued_by": note.issued_by,
    }


def credit_note_view(note: StoredCreditNote, document: CreditDocument) -> View:
    """A credit note with the lines that it cites."""
    credited = {line.position: line.amount_minor for line in document.note.lines}
    return {
        **credit_note_summary(note),
        "invoice_number": document.invoice_number,
        "lines": [
            {
                "position": line.position,
                "model": line.model,
                "unit": line.unit,
                "invoiced": show_minor(line.amount_minor, note.currency),
                "amount": show_minor(credited[line.position], note.currency),
            }
            for line in document.lines
        ],
        "taxes": [tax_view(tax, note.currency) for tax in document.note.taxes],
    }


def blocker_view(blocker: Blocker) -> View:
    """One thing that keeps an invoice from being issued."""
    return {
        "obstacle": blocker.obstacle.value,
        "subject": blocker.subject,
        "count": blocker.count,
        "what": blocker.what,
        "can_be_overridden": blocker.can_be_overridden,
    }


def seller_view(seller: Seller) -> View:
    """Who sells."""
    shown: View = msgspec.json.decode(msgspec.json.encode(seller))
    return shown

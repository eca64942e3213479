"""The shapes of the answers about invoices, for the OpenAPI document. Money is text in plain
decimal digits, times RFC 3339 in UTC, days `2026-12-01`."""

from typing import Annotated, Any

import msgspec

from billing.domain.invoicing.issuing import Obstacle
from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.usage_group import LineKind
from gateway.http.openapi_answers import Instant

Day = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date"})]


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class PeriodAnswer(_Answer):
    """A month of a time zone, its end not included."""

    month: str
    time_zone: str
    start: Instant
    end: Instant


class CustomerAnswer(_Answer):
    """A tenant, as printed."""

    tenant_id: str
    name: str
    address: list[str]
    country: str | None
    tax_id: str | None
    email: str | None
    reference: str | None


class SellerAnswer(_Answer):
    """Who sells, as printed."""

    name: str
    address: list[str]
    country: str
    tax_id: str | None
    email: str | None
    bank: list[str]
    invoice_prefix: str
    credit_note_prefix: str
    time_zone: str


class InvoiceLineAnswer(_Answer):
    """A quantity times `unit_price`, which is that of `price_per` units, is `amount_exact`;
    `amount` is that rounded once."""

    position: int
    kind: LineKind
    month: str
    model: str
    provider: str
    request_class: str = msgspec.field(name="class")
    unit: str
    quantity: int
    unit_price: str
    price_per: int
    price_id: int
    amount_exact: str
    amount: str
    tax_rate: str


class TaxAnswer(_Answer):
    """The tax of one rate, in percent, on `base`."""

    rate: str
    name: str
    note: str
    base: str
    amount: str


class BlockerAnswer(_Answer):
    """What in a draft's records keeps it from being issued."""

    obstacle: Obstacle
    subject: str
    count: int
    what: str
    can_be_overridden: bool


class InvoiceSummaryAnswer(_Answer):
    """An invoice without its lines. A draft has no number; `outstanding` is what is still to be
    paid; `override` says why it was issued although something might still come; `simulated`
    whether any of its usage is made up for a demonstration. A tenant's roles are not told who did
    what, nor why."""

    id: str
    number: str | None
    status: Status
    tenant_id: str
    period: PeriodAnswer
    currency: str
    subtotal: str
    tax: str
    total: str
    paid: str
    credited: str
    outstanding: str
    overpaid: str
    row_count: int
    content_hash: str | None
    simulated: bool
    cut_off: Instant
    drafted_at: Instant
    drafted_by: str | None
    issued_at: Instant | None
    issued_by: str | None
    due_on: Day | None
    paid_at: Instant | None
    voided_at: Instant | None
    voided_by: str | None
    void_reason: str | None
    override: dict[str, Any] | None


class PaymentAnswer(_Answer):
    """A payment that was noted. One that `reverses` another takes it back: its amount is that one's
    below nothing, and `reason` says why. `overpays` where it was more than was outstanding."""

    id: str
    invoice_id: str
    amount: str
    currency: str
    received_on: Day
    reference: str
    noted_at: Instant
    noted_by: str | None
    overpays: bool
    reverses: str | None
    reason: str | None


class NotedPaymentAnswer(PaymentAnswer):
    """A payment, and where its invoice stands after it."""

    invoice: InvoiceSummaryAnswer


class CreditNoteSummaryAnswer(_Answer):
    """A credit note without its lines."""

    id: str
    number: str
    invoice_id: str
    tenant_id: str
    currency: str
    subtotal: str
    tax: str
    total: str
    reason: str
    reference: str | None
    content_hash: str
    issued_at: Instant
    issued_by: str | None


class UnbilledAnswer(_Answer):
    """Requests of the tenant's month in a currency that are on no invoice, and that no later one
    will have by itself. `billed_by` says in words which would have them, and what to do."""

    month: str
    currency: str
    requests: int
    billed_by: str


class InvoiceAnswer(InvoiceSummaryAnswer):
    """An invoice with its lines, payments and credit notes. `unbilled` is what of its tenant, in
    its month and before, neither it nor another invoice has."""

    customer: CustomerAnswer
    lines: list[InvoiceLineAnswer]
    taxes: list[TaxAnswer]
    payments: list[PaymentAnswer]
    credit_notes: list[CreditNoteSummaryAnswer]
    blockers: list[BlockerAnswer]
    unbilled: list[UnbilledAnswer]


class CreditLineAnswer(_Answer):
    """A line of the invoice, and how much of it is credited."""

    position: int
    model: str
    unit: str
    invoiced: str
    amount: str


class CreditNoteAnswer(CreditNoteSummaryAnswer):
    """A credit note with the lines that it cites."""

    invoice_number: str
    lines: list[CreditLineAnswer]
    taxes: list[TaxAnswer]


class InvoiceDocumentAnswer(_Answer):
    """`{id}.json`: what is printed on an invoice."""

    format: int
    invoice_id: str
    number: str | None
    currency: str
    issued_at: Instant | None
    issued_on: Day | None
    due_on: Day | None
    seller: SellerAnswer | None
    customer: CustomerAnswer
    period: PeriodAnswer
    lines: list[InvoiceLineAnswer]
    subtotal: str
    taxes: list[TaxAnswer]
    total: str
    row_count: int
    cut_off: Instant
    notes: list[str]
    content_hash: str | None


class CreditedLineAnswer(InvoiceLineAnswer):
    """A line as the invoice has it, which was `invoiced`; `amount` of it is credited."""

    invoiced: str


class CreditNoteDocumentAnswer(_Answer):
    """`{id}.json`: what is printed on a credit note."""

    format: int
    credit_note_id: str
    number: str
    invoice_id: str
    invoice_number: str
    invoice_issued_on: Day
    currency: str
    issued_at: Instant
    issued_on: Day
    seller: SellerAnswer
    customer: CustomerAnswer
    period: PeriodAnswer
    reason: str
    lines: list[CreditedLineAnswer]
    subtotal: str
    taxes: list[TaxAnswer]
    total: str
    notes: list[str]
    content_hash: str

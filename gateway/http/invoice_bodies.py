"""What the finance API takes of invoices: bodies of requests, read strictly."""

from datetime import date

import msgspec


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class DraftBody(_Strict):
    """Whose invoice of which month, as `2026-11`; in the tenant's own currency unless it says
    another."""

    tenant_id: str
    period: str
    currency: str | None = None


class OverrideBody(_Strict):
    """Why an invoice is issued although something may still come."""

    reason: str


class IssueBody(_Strict):
    """Nothing, or finance's word."""

    override: OverrideBody | None = None


class VoidBody(_Strict):
    """Why it is void."""

    reason: str


class PaymentBody(_Strict, kw_only=True):
    """A payment, in the invoice's currency; `reference` names it elsewhere and is noted once. With
    `may_overpay` it may be more than what is outstanding."""

    amount: str
    received_on: date
    reference: str
    may_overpay: bool = False


class TakeBackBody(_Strict):
    """Why a payment is taken back."""

    reason: str


class CreditLineBody(_Strict):
    """So much of a line, net, in the invoice's currency."""

    position: int
    amount: str


class CreditNoteBody(_Strict, kw_only=True):
    """What is credited of an invoice; without `lines` all that is left of it. A `reference` is
    credited once."""

    invoice_id: str
    lines: list[CreditLineBody] | None = None
    reason: str
    reference: str | None = None


class SellerBody(_Strict, kw_only=True):
    """Who sells, whole. Numbers of invoices and credit notes begin with their prefixes; dates on
    them are of `time_zone`."""

    name: str
    address: tuple[str, ...] = ()
    country: str
    tax_id: str | None = None
    email: str | None = None
    bank: tuple[str, ...] = ()
    invoice_prefix: str = "INV"
    credit_note_prefix: str = "CN"
    time_zone: str = "UTC"

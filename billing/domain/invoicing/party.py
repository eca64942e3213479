"""Who an invoice is from and whom it is made out to, as printed: copied into it when issued."""

import msgspec


class Seller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sells. There is one."""

    name: str
    address: tuple[str, ...] = ()
    """Lines, as printed."""
    country: str
    """ISO 3166 alpha-2."""
    tax_id: str | None = None
    email: str | None = None
    bank: tuple[str, ...] = ()
    """Lines that say where to pay, as printed."""
    invoice_prefix: str = "INV"
    credit_note_prefix: str = "CN"
    time_zone: str = "UTC"
    """Whose calendar decides the dates on a document and the year of its number."""


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant, as an invoice names it."""

    tenant_id: str
    name: str
    """The legal name, or where there is none the tenant's."""
    address: tuple[str, ...] = ()
    """Lines, as printed."""
    country: str | None = None
    """ISO 3166 alpha-2."""
    tax_id: str | None = None
    email: str | None = None
    reference: str | None = None
    """What the customer wants said on it, such as an order's number."""

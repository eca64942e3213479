"""The tables of invoices, as queries name them. Migrations 0014 and 0018 make them, and the
triggers that keep what is issued as it is."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from billing.postgres.reconcile_tables import metadata

__all__ = [
    "credit_note",
    "credit_note_line",
    "invoice",
    "invoice_line",
    "invoice_number",
    "invoice_quarter",
    "invoice_row",
    "metadata",
    "number_prefix",
    "payment",
    "seller",
]

_INSTANT = DateTime(timezone=True)
_HASH = "content_hash ~ '^[0-9a-f]{64}$'"


def _check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=name)


def _id() -> Column[object]:
    return Column("id", Uuid, primary_key=True, server_default=text("uuidv7()"))


def _now(name: str) -> Column[object]:
    return Column(name, _INSTANT, nullable=False, server_default=func.now())


invoice = Table(
    "invoice",
    metadata,
    _id(),
    Column("tenant_id", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("month", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("period_start", _INSTANT, nullable=False),
    Column("period_end", _INSTANT, nullable=False),
    Column("status", Text, nullable=False, server_default="draft"),
    Column("number", Text, unique=True),
    Column("subtotal_minor", BigInteger, nullable=False),
    Column("tax_minor", BigInteger, nullable=False),
    Column("total_minor", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("cost_pico", Numeric, nullable=False),
    Column("cut_off", _INSTANT, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("content_hash", Text, nullable=False),
    _now("drafted_at"),
    Column("drafted_by", Text, nullable=False),
    Column("issued_at", _INSTANT),
    Column("issued_by", Text),
    Column("due_on", Date),
    Column("override", JSONB),
    Column("paid_at", _INSTANT),
    Column("voided_at", _INSTANT),
    Column("voided_by", Text),
    Column("void_reason", Text),
    Column("changes", BigInteger, nullable=False, server_default="0"),
    _check("currency", "currency ~ '^[A-Z]{3}$'"),
    _check("month", "month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'"),
    _check("period", "period_start < period_end"),
    _check("status", "status IN ('draft', 'issued', 'paid', 'void')"),
    _check(
        "amounts",
        "subtotal_minor >= 0 AND tax_minor >= 0 AND total_minor = subtotal_minor + tax_minor",
    ),
    _check("rows", "row_count >= 0 AND cost_pico >= 0"),
    _check("content_hash", _HASH),
    _check(
        "issued",
        "(status = 'draft') = (number IS NULL) AND (number IS NULL) = (issued_at IS NULL)"
        " AND (number IS NULL) = (issued_by IS NULL) AND (number IS NULL) = (due_on IS NULL)",
    ),
    _check(
        "ended",
        "(status = 'paid') = (paid_at IS NOT NULL) AND (status = 'void') = (voided_at IS NOT NULL)"
        " AND (voided_at IS NULL) = (voided_by IS NULL)"
        " AND (voided_at IS NULL) = (void_reason IS NULL)",
    ),
    Index(
        "invoice_tenant_id_currency_month_key",
        "tenant_id",
        "currency",
        "month",
        unique=True,
        postgresql_where=text("status <> 'void'"),
    ),
    Index("invoice_issued_at_idx", "issued_at"),
)
"""One per tenant, currency and month that is not void. `document` is what is printed, in its
canonical bytes: of a draft as it was when it was last made, of all others for ever. Instants and
amounts beside it are for queries; `cut_off` is when its rows were looked for. Triggers count in
`changes` what is added to it, so that two who add at once never miss each other."""

invoice_line = Table(
    "invoice_line",
    metadata,
    Column("invoice_id", Uuid, ForeignKey("invoice.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("month", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("quantity", BigInteger, nullable=False),
    Column("price_id", BigInteger, nullable=False),
    Column("unit_price_pico", BigInteger, nullable=False),
    Column("amount_pico", Numeric, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("tax_rate_milli_percent", Integer, nullable=False),
    _check("position", "position >= 1"),
    _check("kind", "kind IN ('usage', 'adjustment')"),
    _check(
        "unit",
        "unit IN ('input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens',"
        " 'requests')",
    ),
    _check(
        "amounts",
        "quantity > 0 AND unit_price_pico >= 0 AND amount_minor >= 0"
        " AND tax_rate_milli_percent >= 0"
        " AND amount_pico = CAST(quantity AS numeric) * unit_price_pico",
    ),
)
"""The lines, as the document has them."""

invoice_row = Table(
    "invoice_row",
    metadata,
    Column("request_id", Uuid, nullable=False),
    Column("invoice_id", Uuid, nullable=False),
    Column("admitted_at", _INSTANT, nullable=False),
    Column("void", Boolean, nullable=False, server_default=text("false")),
    Index(
        "invoice_row_request_id_key", "request_id", unique=True, postgresql_where=text("NOT void")
    ),
)
"""Which request is on which issued invoice: on one at most that is not void. Without a foreign key,
which would look each of millions of rows up. Those of an invoice are found by the range of its
quarters: ids begin with their time."""

invoice_quarter = Table(
    "invoice_quarter",
    metadata,
    Column("invoice_id", Uuid, nullable=False),
    Column("bucket", _INSTANT, nullable=False),
    Column("kind", Text, nullable=False),
    Column("month", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("price_id", BigInteger, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("uncached_prompt_tokens", BigInteger, nullable=False),
    Column("cached_prompt_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_pico", Numeric, nullable=False),
    _check("bucket", "bucket = usage_bucket(bucket)"),
    _check("requests", "requests > 0"),
    Index(
        "invoice_quarter_key",
        "invoice_id",
        "bucket",
        "kind",
        "month",
        "model",
        "provider",
        "class",
        "price_id",
        unique=True,
    ),
)
"""What an issued invoice takes from each quarter of an hour: the sums of its `invoice_row`s, as its
lines count them (output without reasoning). A quarter of whose billable records there are more than
invoices have taken has late ones."""

credit_note = Table(
    "credit_note",
    metadata,
    _id(),
    Column("invoice_id", Uuid, ForeignKey("invoice.id"), nullable=False),
    Column("tenant_id", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("number", Text, nullable=False, unique=True),
    Column("reason", Text, nullable=False),
    Column("reference", Text),
    Column("net_minor", BigInteger, nullable=False),
    Column("tax_minor", BigInteger, nullable=False),
    Column("total_minor", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("issued_at", _INSTANT, nullable=False),
    Column("issued_by", Text, nullable=False),
    _check("amounts", "net_minor > 0 AND tax_minor >= 0 AND total_minor = net_minor + tax_minor"),
    _check("content_hash", _HASH),
    Index("credit_note_invoice_id_reference_key", "invoice_id", "reference", unique=True),
)
"""Issued at once, and never changed. `reference` is the caller's own name for it."""

credit_note_line = Table(
    "credit_note_line",
    metadata,
    Column("credit_note_id", Uuid, ForeignKey("credit_note.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("invoice_id", Uuid, nullable=False),
    Column("invoice_position", Integer, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["invoice_id", "invoice_position"], ["invoice_line.invoice_id", "invoice_line.position"]
    ),
    _check("amount", "amount_minor > 0"),
    Index("credit_note_line_invoice_id_idx", "invoice_id", "invoice_position"),
)
"""So much of a line of the invoice, net."""

payment = Table(
    "payment",
    metadata,
    _id(),
    Column("invoice_id", Uuid, ForeignKey("invoice.id"), nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("received_on", Date, nullable=False),
    Column("reference", Text, nullable=False),
    _now("noted_at"),
    Column("noted_by", Text, nullable=False),
    Column("overpays", Boolean, nullable=False, server_default=text("false")),
    Column("reverses", Uuid, ForeignKey("payment.id"), unique=True),
    Column("reason", Text),
    UniqueConstraint("invoice_id", "reference", name="payment_invoice_id_reference_key"),
    _check(
        "amount",
        "CASE WHEN reverses IS NULL THEN amount_minor > 0 AND reason IS NULL"
        " ELSE amount_minor < 0 AND reason IS NOT NULL AND NOT overpays END",
    ),
)
"""Payments that finance has noted; one reference of an invoice is one payment. `overpays` where it
was more than was outstanding. One that `reverses` another takes it back, whole: its amount is below
nothing, and `reason` says why."""

invoice_number = Table(
    "invoice_number",
    metadata,
    Column("series", Text, primary_key=True),
    Column("last", BigInteger, nullable=False),
    _check("last", "last >= 1"),
)
"""The last number of each series, such as `INV-2026-`, taken with the document that carries it."""

number_prefix = Table(
    "number_prefix",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("invoices", Boolean, nullable=False),
    Column("credit_notes", Boolean, nullable=False),
    _check("kind", "invoices OR credit_notes"),
)
"""What a prefix numbers, since the first invoice was issued by a seller that has it. Written by
triggers. Both only where that was so before there were these."""

seller = Table(
    "seller",
    metadata,
    Column("id", Boolean, primary_key=True, server_default=text("true"), autoincrement=False),
    Column("details", JSONB, nullable=False),
    _now("changed_at"),
    Column("changed_by", Text, nullable=False),
    _check("id", "id"),
)
"""Who sells: one row, `billing.domain.invoicing.party.Seller` as JSON."""

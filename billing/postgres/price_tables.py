"""The price book's tables, as queries name them. Migrations 0004, 0013 and 0018 make them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.schema import conv

from billing.domain.price_book import PRICE_PICO_MAX, REQUEST_PICO_MAX
from billing.postgres.tables import metadata

__all__ = ["metadata", "plan_member", "price"]

_INSTANT = DateTime(timezone=True)


def _check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=conv(f"price_{name}_check"))


price = Table(
    "price_entry",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("tenant_id", Text),
    Column("plan", Text),
    Column("class", Text),
    Column("input_pico", BigInteger),
    Column("cached_input_pico", BigInteger),
    Column("output_pico", BigInteger),
    Column("reasoning_pico", BigInteger),
    Column("request_pico", BigInteger, nullable=False, server_default="0"),
    Column("withdrawn", Boolean, nullable=False, server_default=text("false")),
    Column("effective_from", _INSTANT, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("created_at", _INSTANT, nullable=False, server_default=func.now()),
    UniqueConstraint(
        "model",
        "provider",
        "currency",
        "tenant_id",
        "plan",
        "class",
        "effective_from",
        name="price_model_key",
        postgresql_nulls_not_distinct=True,
    ),
    _check("provider", "provider = 'self' OR provider LIKE 'hosted:_%'"),
    _check("currency", "currency ~ '^[A-Z]{3}$'"),
    _check("scope", "tenant_id IS NULL OR plan IS NULL"),
    _check("class", "class IN ('interactive', 'batch')"),
    _check(
        "pico",
        f"input_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
        f" AND cached_input_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
        f" AND output_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
        f" AND reasoning_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
        f" AND request_pico BETWEEN 0 AND {REQUEST_PICO_MAX}",
    ),
    _check(
        "withdrawn",
        "CASE WHEN withdrawn"
        " THEN num_nonnulls(input_pico, cached_input_pico, output_pico, reasoning_pico) = 0"
        " AND request_pico = 0 AND num_nonnulls(tenant_id, plan, class) > 0"
        " ELSE num_nonnulls(input_pico, output_pico) = 2 END",
    ),
    _check("effective_from", "effective_from = date_trunc('milliseconds', effective_from)"),
    PrimaryKeyConstraint("id", name="price_pkey"),
    Index("price_changed_idx", "changed"),
)
"""The price book. A row is written once, numbered by `changed` as the directory's rows are, and
begins in the past only where no price held; triggers see to each of these. What is withdrawn has no
prices. The view `price` is the part of it that releases of before 0013 know."""

plan_member = Table(
    "plan_member",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column("plan", Text),
    Column("effective_from", _INSTANT, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("created_at", _INSTANT, nullable=False, server_default=func.now()),
    UniqueConstraint("tenant_id", "effective_from"),
    CheckConstraint(
        "effective_from = date_trunc('milliseconds', effective_from)", name="effective_from"
    ),
    Index("plan_member_changed_idx", "changed"),
)
"""Which plan a tenant is on, from an instant on until its next row; NULL: none. Written once, never
for the past. `tenant_id` refers to the directory's table."""

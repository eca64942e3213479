"""The tables of roll-ups and of what reconciliation found, as queries name them. Migration 0012
makes them, and the triggers that mark what is out of date."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from billing.postgres.engine_tables import metadata
from billing.postgres.tables import usage_record

__all__ = [
    "metadata",
    "reconcile_finding",
    "reconcile_run",
    "usage_rollup",
    "usage_rollup_dirty",
]

_INSTANT = DateTime(timezone=True)

usage_rollup = Table(
    "usage_rollup",
    metadata,
    Column("bucket", _INSTANT, nullable=False),
    Column("tenant_id", Text, nullable=False),
    Column("api_key_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("currency", Text),
    Column("price_id", BigInteger),
    Column("billable", Boolean, nullable=False),
    Column("final", Boolean, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("cached_prompt_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("sequences", BigInteger, nullable=False),
    Column("cost_pico", Numeric, nullable=False),
    Column("list_cost_pico", Numeric, nullable=False),
    Column("unpriced_requests", BigInteger, nullable=False),
    CheckConstraint("bucket = usage_bucket(bucket)", name="bucket"),
    CheckConstraint("requests > 0", name="requests"),
    Index(
        "usage_rollup_key",
        "bucket",
        "tenant_id",
        "api_key_id",
        "model",
        "class",
        "provider",
        "currency",
        "price_id",
        "billable",
        "final",
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
    Index("usage_rollup_tenant_id_bucket_idx", "tenant_id", "bucket"),
    Index(
        "usage_rollup_unpriced_idx",
        "bucket",
        "tenant_id",
        postgresql_where=text("billable AND price_id IS NULL"),
    ),
)
"""Usage of a quarter of an hour, by the instant of admission: always made anew from the records,
never added to. `unpriced_requests` are those whose cost nobody knows; they add 0 to it."""

usage_rollup_dirty = Table(
    "usage_rollup_dirty",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("bucket", _INSTANT, nullable=False),
    Column("tenant_id", Text, nullable=False),
    Index("usage_rollup_dirty_quarter_idx", "bucket", "tenant_id"),
)
"""Quarters of tenants whose roll-ups may be out of date; written with the record, by a trigger."""

reconcile_run = Table(
    "reconcile_run",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("from_at", _INSTANT, nullable=False),
    Column("to_at", _INSTANT, nullable=False),
    Column("started_at", _INSTANT, nullable=False),
    Column("ended_at", _INSTANT, nullable=False, server_default=func.now()),
    Column("findings", Integer, nullable=False),
    Column("verdicts", JSONB, nullable=False),
    CheckConstraint("kind IN ('quarter', 'day')", name="kind"),
    CheckConstraint("from_at < to_at", name="period"),
    Index("reconcile_run_started_at_idx", "started_at"),
)
"""What a gateway has reconciled by itself, and what each check said. `findings` counts them all."""

reconcile_finding = Table(
    "reconcile_finding",
    metadata,
    Column(
        "run_id", BigInteger, ForeignKey("reconcile_run.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("number", Integer, primary_key=True),
    Column("check_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("request_id", Uuid),
    Column("size", BigInteger, nullable=False),
    Column("unit", Text, nullable=False),
    Column("what", Text, nullable=False),
)
"""The findings of a run that are kept: of each check so many, the first ones."""

Index(
    "usage_record_without_place_idx",
    usage_record.c.gateway_id,
    postgresql_where=text("boot IS NULL"),
)

"""The tables of roll-ups over days, weeks and all tenants, as queries name them. Migration 0019
makes them, and the triggers that mark what is out of date."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Numeric,
    Table,
    Text,
)

from billing.postgres.reconcile_tables import metadata

__all__ = [
    "metadata",
    "usage_rollup_coarse",
    "usage_rollup_day_dirty",
    "usage_rollup_total",
    "usage_rollup_total_dirty",
    "usage_rollup_week_dirty",
]

_INSTANT = DateTime(timezone=True)


def _counts() -> list[Column[object]]:
    whole = (
        "requests", "prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens",
        "sequences",
    )  # fmt: skip
    return [
        *(Column(name, BigInteger, nullable=False) for name in whole),
        *(Column(name, Numeric, nullable=False) for name in ("cost_pico", "list_cost_pico")),
        Column("unpriced_requests", BigInteger, nullable=False),
    ]


usage_rollup_coarse = Table(
    "usage_rollup_coarse",
    metadata,
    Column("level", Text, nullable=False),
    Column("start", _INSTANT, nullable=False),
    Column("tenant_id", Text, nullable=False),
    Column("api_key_id", Text),
    Column("model", Text),
    Column("class", Text),
    Column("provider", Text),
    Column("currency", Text),
    Column("price_id", BigInteger),
    Column("billable", Boolean, nullable=False),
    Column("final", Boolean, nullable=False),
    *_counts(),
    CheckConstraint(
        "start = CASE WHEN level LIKE 'week_%' THEN usage_week(start) ELSE usage_day(start) END",
        name="start",
    ),
    CheckConstraint(
        "(level LIKE '%_tenant') = (api_key_id IS NULL)"
        " AND (level = 'day_detail') = (model IS NOT NULL)"
        " AND (level = 'day_detail') = (class IS NOT NULL)"
        " AND (level = 'day_detail') = (provider IS NOT NULL)"
        " AND (level = 'day_detail' OR price_id IS NULL)",
        name="level",
    ),
    CheckConstraint("requests > 0", name="requests"),
    Index(
        "usage_rollup_coarse_key",
        "tenant_id",
        "start",
        "api_key_id",
        "model",
        "class",
        "provider",
        "currency",
        "price_id",
        "billable",
        "final",
        "level",
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
    Index("usage_rollup_coarse_start_idx", "start"),
    postgresql_partition_by="LIST (level)",
)
"""Usage of a day, UTC, or a week from Monday on, that is over. Days are made anew of the roll-ups
of their quarters, weeks of those of their days. All of it at each level, a table
`usage_rollup_LEVEL` each: by tenant alone; by key; of days also in detail, with model, class,
provider and price."""


def _dirty(span: str) -> Table:
    return Table(
        f"usage_rollup_{span}_dirty",
        metadata,
        Column("start", _INSTANT, primary_key=True),
        Column("tenant_id", Text, primary_key=True),
    )


usage_rollup_day_dirty = _dirty("day")
"""Days of tenants that are not made of the quarters that there are now."""
usage_rollup_week_dirty = _dirty("week")
"""Weeks of tenants that are not made of the days that there are now."""

usage_rollup_total = Table(
    "usage_rollup_total",
    metadata,
    Column("bucket", _INSTANT, nullable=False),
    Column("model", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("currency", Text),
    Column("price_id", BigInteger),
    Column("billable", Boolean, nullable=False),
    Column("final", Boolean, nullable=False),
    *_counts(),
    CheckConstraint("bucket = usage_bucket(bucket)", name="bucket"),
    CheckConstraint("requests > 0", name="requests"),
    Index(
        "usage_rollup_total_key",
        "bucket",
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
)
"""Usage of a quarter of an hour, that is over, of all tenants together."""

usage_rollup_total_dirty = Table(
    "usage_rollup_total_dirty", metadata, Column("bucket", _INSTANT, primary_key=True)
)
"""Quarters whose total is not made of the roll-ups that there are now."""

"""The tables of what engines have counted, as queries name them. Migration 0011 makes them."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    Table,
    Text,
    func,
)

from billing.postgres.tables import metadata

__all__ = ["engine_sample", "engine_turn", "metadata"]

_INSTANT = DateTime(timezone=True)

engine_turn = Table(
    "engine_turn",
    metadata,
    Column("worker_id", Text, primary_key=True),
    Column("turn", BigInteger, nullable=False),
    Column("gateway_id", Text, nullable=False),
    Column("taken_at", _INSTANT, nullable=False, server_default=func.clock_timestamp()),
)
"""Which gateway took the last turn at reading a worker's counters. Only the last stores them."""

engine_sample = Table(
    "engine_sample",
    metadata,
    Column("worker_id", Text, primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("life", Integer, nullable=False),
    Column("gateway_id", Text, nullable=False),
    Column("asked_at", _INSTANT, nullable=False),
    Column("taken_at", _INSTANT, nullable=False, server_default=func.clock_timestamp()),
    Column("mark", Text),
    Column("running", Integer),
    Column("prompt_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("requests", BigInteger),
    Column("aborted", BigInteger),
    Column("health", BigInteger),
    CheckConstraint("life >= 1", name="life"),
    CheckConstraint(
        "running >= 0 AND prompt_tokens >= 0 AND output_tokens >= 0 AND cached_tokens >= 0"
        " AND requests >= 0 AND aborted >= 0 AND health >= 0",
        name="counts",
    ),
    Index("engine_sample_taken_at_idx", "taken_at"),
)
"""An engine's own counters, as read between `asked_at` and `taken_at` (Postgres's time), in the
order of `turn`. They begin at 0 again in another `life`, which a counter that fell tells, or a
`mark` of the process that changed; null is what the engine does not tell."""

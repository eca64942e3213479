"""The tables under the usage views, as queries name them. Migrations 0002, 0005, 0007, 0008 and
0013 make them.

Rows carry tenant and key ids without foreign keys: a bill outlives its tenant. Partitions by month
are not listed here; Postgres's own function `ensure_usage_partitions` makes them.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

_INSTANT = DateTime(timezone=True)
_BY_MONTH = "RANGE (admitted_at)"


def _check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=name)


usage_record = Table(
    "usage_record",
    metadata,
    Column("request_id", Uuid, primary_key=True),
    Column("admitted_at", _INSTANT, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column("api_key_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("first_token_at", _INSTANT),
    Column("ended_at", _INSTANT, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_prompt_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("sequences", Integer, nullable=False),
    Column("queue_ms", Integer, nullable=False),
    Column("ttft_ms", Integer),
    Column("tpot_us", Integer),
    Column("itl_max_us", Integer),
    Column("outcome", Text, nullable=False),
    Column("final", Boolean, nullable=False),
    Column("finish_reason", Text),
    Column("usage_source", Text, nullable=False),
    Column("usage_flags", ARRAY(Text), nullable=False),
    Column("provider", Text, nullable=False),
    Column("worker_id", Text),
    Column("attempts", Integer, nullable=False),
    Column("billable", Boolean, nullable=False),
    Column("billing_policy", Integer, nullable=False),
    Column("price_id", BigInteger),
    Column("cost_pico", BigInteger),
    Column("list_cost_pico", BigInteger),
    Column("currency", Text),
    Column("gateway_id", Text, nullable=False),
    Column("boot", BigInteger),
    Column("seq", BigInteger),
    Column("recorded_at", _INSTANT, nullable=False, server_default=func.now()),
    _check("id_time", "admitted_at IS NOT DISTINCT FROM uuid_v7_time(request_id)"),
    _check("class", "class IN ('interactive', 'batch')"),
    _check(
        "outcome",
        "outcome IN ('completed', 'client_cancelled', 'worker_failed', 'timed_out', 'refused',"
        " 'gateway_lost')",
    ),
    _check(
        "usage_source",
        "usage_source IN ('engine_final', 'engine_progress', 'counted', 'estimated')",
    ),
    _check("provider", "provider = 'self' OR provider LIKE 'hosted:_%'"),
    _check(
        "counts",
        "prompt_tokens >= 0 AND cached_prompt_tokens >= 0 AND output_tokens >= 0"
        " AND reasoning_tokens >= 0 AND sequences >= 1 AND attempts >= 0",
    ),
    _check("durations", "queue_ms >= 0 AND ttft_ms >= 0 AND tpot_us >= 0 AND itl_max_us >= 0"),
    _check(
        "cached",
        "cached_prompt_tokens <= prompt_tokens OR 'cached_over_prompt' = ANY (usage_flags)",
    ),
    _check(
        "cost",
        "(cost_pico IS NULL AND list_cost_pico IS NULL) OR currency IS NOT NULL",
    ),
    _check("journal", "(boot IS NULL) = (seq IS NULL)"),
    Index("usage_record_tenant_id_admitted_at_idx", "tenant_id", "admitted_at", "request_id"),
    Index("usage_record_admitted_at_idx", "admitted_at", "request_id"),
    Index(
        "usage_record_unpriced_idx",
        "admitted_at",
        "request_id",
        postgresql_where=text("billable AND price_id IS NULL"),
    ),
    postgresql_partition_by=_BY_MONTH,
)
"""One row per admitted request. `gateway_id`, `boot` and `seq` say which journal record it came
from; the last two are NULL where it came by another way. `recorded_at` is when Postgres saw it."""

usage_attempt = Table(
    "usage_attempt",
    metadata,
    Column("request_id", Uuid, primary_key=True),
    Column("admitted_at", _INSTANT, primary_key=True),
    Column("choice", Integer, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("worker_id", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("started_at", _INSTANT, nullable=False),
    Column("ended_at", _INSTANT, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("provider_request_id", Text),
    Column("provider_cost_pico", BigInteger),
    Column("usage_source", Text),
    Column("cached_prompt_tokens", Integer),
    _check("id_time", "admitted_at IS NOT DISTINCT FROM uuid_v7_time(request_id)"),
    _check(
        "outcome",
        "outcome IN ('completed', 'client_cancelled', 'worker_failed', 'timed_out', 'refused',"
        " 'gateway_lost', 'taken_back')",
    ),
    _check("provider", "provider = 'self' OR provider LIKE 'hosted:_%'"),
    _check("counts", "choice >= 0 AND attempt >= 1 AND prompt_tokens >= 0 AND output_tokens >= 0"),
    postgresql_partition_by=_BY_MONTH,
)
"""One row per stream opened upstream. `usage_source` and `cached_prompt_tokens` are NULL in rows of
releases that did not say."""

journal_watermark = Table(
    "journal_watermark",
    metadata,
    Column("gateway_id", Text, primary_key=True),
    Column("boot", BigInteger, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("admitted_count", BigInteger, nullable=False),
    Column("ended_count", BigInteger, nullable=False),
    Column("missing_count", BigInteger, nullable=False),
    Column("updated_at", _INSTANT, nullable=False, server_default=func.now()),
    _check("sum", "seq = admitted_count + ended_count + missing_count"),
)
"""How far each boot of each gateway's journal is in Postgres, and what that was: admissions, ends,
and numbers that were damaged on disk. It only grows."""

usage_dead_letter = Table(
    "usage_dead_letter",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("gateway_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("request_id", Uuid),
    Column("reason", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("created_at", _INSTANT, nullable=False, server_default=func.now()),
    Column("resolved_at", _INSTANT),
    Column("retries", Integer, nullable=False, server_default="0"),
    UniqueConstraint("gateway_id", "source", name="usage_dead_letter_gateway_id_source_key"),
    Index("usage_dead_letter_open_idx", "created_at", postgresql_where=text("resolved_at IS NULL")),
)
"""Records that Postgres refused, as the journal holds them (msgpack), until someone resolves them.
`source` is the journal record's place, so that a replay adds none. `retries` counts how often
it was tried again and refused."""

journal_gap = Table(
    "journal_gap",
    metadata,
    Column("gateway_id", Text, primary_key=True),
    Column("boot", BigInteger, primary_key=True),
    Column("first_seq", BigInteger, primary_key=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("found_at", _INSTANT, nullable=False, server_default=func.now()),
    _check("order", "first_seq <= last_seq"),
)
"""Numbers of a journal that its disk has lost, both ends included: each watermark's
`missing_count`, told one by one."""

gateway_seen = Table(
    "gateway_seen",
    metadata,
    Column("gateway_id", Text, primary_key=True),
    Column("boot", BigInteger, primary_key=True, autoincrement=False),
    Column("durable_seq", BigInteger, nullable=False),
    Column("shipped_seq", BigInteger, nullable=False),
    Column("open_count", BigInteger, nullable=False),
    Column("seen_at", _INSTANT, nullable=False),
    Column("recorded_at", _INSTANT, nullable=False, server_default=func.now()),
    Column("closed_at", _INSTANT),
)
"""How far the journal of each boot of each gateway was known to be on its disk, by the store's time
`seen_at`. `closed_at` is set once nothing more is expected of a gateway that is gone: all is in
Postgres, or it was given up."""

usage_provisional = Table(
    "usage_provisional",
    metadata,
    Column("request_id", Uuid, primary_key=True),
    Column("admitted_at", _INSTANT, primary_key=True),
    Column("gateway_id", Text, nullable=False),
    Column("made_at", _INSTANT, nullable=False, server_default=func.now()),
    Index("usage_provisional_made_at_idx", "made_at"),
    Index("usage_provisional_gateway_id_idx", "gateway_id"),
)
"""The rows that another gateway wrote in the place of one that is gone, until they are final."""

usage_late = Table(
    "usage_late",
    metadata,
    Column("request_id", Uuid, primary_key=True),
    Column("admitted_at", _INSTANT, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column("gateway_id", Text, nullable=False),
    Column("boot", BigInteger),
    Column("seq", BigInteger),
    Column("outcome", Text, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost_pico", BigInteger),
    Column("currency", Text),
    Column("payload", LargeBinary, nullable=False),
    Column("came_at", _INSTANT, nullable=False, server_default=func.now()),
    _check("journal", "(boot IS NULL) = (seq IS NULL)"),
)
"""What a journal said of a request after its provisional row had become final, which stays as it
is: by how much the account differs from the row (account minus row; `cost_pico` NULL where either
has no cost), and the account itself (msgpack). `outcome` is the account's."""

billing_policy = Table(
    "billing_policy",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("outcome", Text, primary_key=True),
    Column("with_output", Boolean, nullable=False),
    Column("without_output", Boolean, nullable=False),
    _check("version", "version >= 1"),
)
"""Whether an outcome is paid for, by whether any output was generated: a version is written by a
migration and never changed, which a trigger sees to. `billing.domain.policy` is the same table."""

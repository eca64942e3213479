"""Writing usage records to Postgres, in batches that may be repeated without effect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.usage_record import UsageAttempt, UsageRecord


class JournaledRecord(NamedTuple):
    """A usage record and where it comes from. `boot` and `seq` are its place in the journal of
    `gateway_id`, both None where it comes by another way."""

    record: UsageRecord
    gateway_id: str
    boot: int | None = None
    seq: int | None = None


class AttemptOf(NamedTuple):
    """An attempt and the record that it belongs to."""

    record: UsageRecord
    attempt: UsageAttempt


Row = TypeVar("Row")


@dataclass(frozen=True)
class _Column(Generic[Row]):
    """A column of a batch: its name, the type its values are sent as, and how a row gives them.

    Instants are sent as Unix milliseconds (`_ms`), lists of words as one text (`_words`).
    """

    name: str
    sent_as: str
    read: Callable[[Row], object]

    @property
    def parameter_type(self) -> str:
        return {"_ms": "bigint", "_words": "text"}.get(self.sent_as, self.sent_as)

    @property
    def stored(self) -> str:
        if self.sent_as == "_ms":
            return f"unix_ms_time({self.name})"
        if self.sent_as == "_words":
            return f"string_to_array({self.name}, ' ')"
        return self.name


RECORD_COLUMNS: tuple[_Column[JournaledRecord], ...] = (
    _Column("request_id", "uuid", lambda row: row.record.request_id),
    _Column("admitted_at", "_ms", lambda row: row.record.admitted_at_ms),
    _Column("tenant_id", "text", lambda row: row.record.tenant_id),
    _Column("api_key_id", "text", lambda row: row.record.api_key_id),
    _Column("model", "text", lambda row: row.record.model),
    _Column("class", "text", lambda row: row.record.request_class),
    _Column("first_token_at", "_ms", lambda row: row.record.first_token_at_ms),
    _Column("ended_at", "_ms", lambda row: row.record.ended_at_ms),
    _Column("prompt_tokens", "integer", lambda row: row.record.prompt_tokens),
    _Column("cached_prompt_tokens", "integer", lambda row: row.record.cached_prompt_tokens),
    _Column("output_tokens", "integer", lambda row: row.record.output_tokens),
    _Column("reasoning_tokens", "integer", lambda row: row.record.reasoning_tokens),
    _Column("sequences", "integer", lambda row: row.record.sequences),
    _Column("queue_ms", "integer", lambda row: row.record.queue_ms),
    _Column("ttft_ms", "integer", lambda row: row.record.ttft_ms),
    _Column("tpot_us", "integer", lambda row: row.record.tpot_us),
    _Column("itl_max_us", "integer", lambda row: row.record.itl_max_us),
    _Column("outcome", "text", lambda row: str(row.record.outcome)),
    _Column("final", "boolean", lambda row: row.record.final),
    _Column("finish_reason", "text", lambda row: row.record.finish_reason),
    _Column("usage_source", "text", lambda row: str(row.record.usage_source)),
    _Column("usage_flags", "_words", lambda row: " ".join(row.record.usage_flags)),
    _Column("provider", "text", lambda row: row.record.provider),
    _Column("worker_id", "text", lambda row: row.record.worker_id),
    _Column("attempts", "integer", lambda row: len(row.record.attempts)),
    _Column("billable", "boolean", lambda row: row.record.billable),
    _Column("billing_policy", "integer", lambda row: row.record.billing_policy),
    _Column("price_id", "bigint", lambda row: row.record.price_id),
    _Column("cost_pico", "bigint", lambda row: row.record.cost_pico),
    _Column("list_cost_pico", "bigint", lambda row: row.record.list_cost_pico),
    _Column("currency", "text", lambda row: row.record.currency),
    _Column("gateway_id", "text", lambda row: row.gateway_id),
    _Column("boot", "bigint", lambda row: row.boot),
    _Column("seq", "bigint", lambda row: row.seq),
)

ATTEMPT_COLUMNS: tuple[_Column[AttemptOf], ...] = (
    _Column("request_id", "uuid", lambda row: row.record.request_id),
    _Column("admitted_at", "_ms", lambda row: row.record.admitted_at_ms),
    _Column("choice", "integer", lambda row: row.attempt.choice),
    _Column("attempt", "integer", lambda row: row.attempt.attempt),
    _Column("worker_id", "text", lambda row: row.attempt.worker_id),
    _Column("provider", "text", lambda row: row.attempt.provider),
    _Column("started_at", "_ms", lambda row: row.attempt.started_at_ms),
    _Column("ended_at", "_ms", lambda row: row.attempt.ended_at_ms),
    _Column("outcome", "text", lambda row: str(row.attempt.outcome)),
    _Column("prompt_tokens", "integer", lambda row: row.attempt.prompt_tokens),
    _Column("output_tokens", "integer", lambda row: row.attempt.output_tokens),
    _Column("provider_request_id", "text", lambda row: row.attempt.provider_request_id),
    _Column("provider_cost_pico", "bigint", lambda row: row.attempt.provider_cost_pico),
    _Column("usage_source", "text", lambda row: row.attempt.usage_source),
    _Column("cached_prompt_tokens", "integer", lambda row: row.attempt.cached_prompt_tokens),
)


def _insert(table: str, columns: Sequence[_Column[Row]], after: str) -> str:
    names = ", ".join(f'"{column.name}"' for column in columns)
    sent = ", ".join(
        f"${number}::{column.parameter_type}[]" for number, column in enumerate(columns, start=1)
    )
    stored = ", ".join(
        column.stored if column.sent_as.startswith("_") else f'"{column.name}"'
        for column in columns
    )
    return (
        f"INSERT INTO {table} ({names}) SELECT {stored} FROM unnest({sent}) AS sent ({names})"  # noqa: S608 - names of columns, from the tables above
        f" ON CONFLICT {after}"
    )


_REPLACED = ", ".join(
    f'"{column.name}" = EXCLUDED."{column.name}"'
    for column in RECORD_COLUMNS
    if column.name not in ("request_id", "admitted_at")
)
_INSERT_RECORDS = _insert(
    "usage_record",
    RECORD_COLUMNS,
    f"(request_id, admitted_at) DO UPDATE SET {_REPLACED}, recorded_at = now()"
    " WHERE EXCLUDED.final AND NOT usage_record.final RETURNING request_id",
)
_ATTEMPT_REPLACED = ", ".join(
    f'"{column.name}" = EXCLUDED."{column.name}"'
    for column in ATTEMPT_COLUMNS
    if column.name not in ("request_id", "admitted_at", "choice", "attempt")
)
# Only attempts of records that were written come here: one that is there is a provisional row's.
_INSERT_ATTEMPTS = _insert(
    "usage_attempt",
    ATTEMPT_COLUMNS,
    f"(request_id, admitted_at, choice, attempt) DO UPDATE SET {_ATTEMPT_REPLACED}",
)


async def insert_batch(connection: AsyncConnection, rows: Sequence[JournaledRecord]) -> int:
    """Insert records and their attempts within the caller's transaction; returns how many records
    were written.

    A record that is there already is left as it is, except that a final one replaces a provisional
    one, its attempts and the time at which Postgres saw it. All rows or, where Postgres refuses one
    (SQLAlchemy's DBAPIError), none.

    Rows are written in the order of `in_order`, so that no two batches wait for each other.
    """
    unique = in_order(rows)
    if not unique:
        return 0
    result = await connection.exec_driver_sql(
        _INSERT_RECORDS, tuple([column.read(row) for row in unique] for column in RECORD_COLUMNS)
    )
    written = set(result.scalars())
    attempts = [
        AttemptOf(row.record, attempt)
        for row in unique
        if row.record.request_id in written
        for attempt in _one_per_number(row.record.attempts)
    ]
    if attempts:
        await connection.exec_driver_sql(
            _INSERT_ATTEMPTS,
            tuple([column.read(row) for row in attempts] for column in ATTEMPT_COLUMNS),
        )
    return len(written)


def _one_per_number(attempts: Sequence[UsageAttempt]) -> list[UsageAttempt]:
    """The first of each choice and number."""
    chosen: dict[tuple[int, int], UsageAttempt] = {}
    for attempt in attempts:
        chosen.setdefault((attempt.choice, attempt.attempt), attempt)
    return [chosen[key] for key in sorted(chosen)]


def in_order(rows: Sequence[JournaledRecord]) -> list[JournaledRecord]:
    """One row a request, since one statement cannot write a row twice: its first final record, by
    request id. Every writer keeps to this order within a transaction."""
    chosen: dict[tuple[UUID, int], JournaledRecord] = {}
    for row in rows:
        key = (row.record.request_id, row.record.admitted_at_ms)
        if key not in chosen or (row.record.final and not chosen[key].record.final):
            chosen[key] = row
    return [chosen[key] for key in sorted(chosen)]

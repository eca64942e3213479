"""Writing usage records to Postgres, in batches that may be repeated without effect."""

from collections.abc import Callable, Collection, Sequence
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
class Column(Generic[Row]):
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
        return f'"{self.name}"'


RECORD_COLUMNS: tuple[Column[JournaledRecord], ...] = (
    Column("request_id", "uuid", lambda row: row.record.request_id),
    Column("admitted_at", "_ms", lambda row: row.record.admitted_at_ms),
    Column("tenant_id", "text", lambda row: row.record.tenant_id),
    Column("api_key_id", "text", lambda row: row.record.api_key_id),
    Column("model", "text", lambda row: row.record.model),
    Column("class", "text", lambda row: row.record.request_class),
    Column("first_token_at", "_ms", lambda row: row.record.first_token_at_ms),
    Column("ended_at", "_ms", lambda row: row.record.ended_at_ms),
    Column("prompt_tokens", "integer", lambda row: row.record.prompt_tokens),
    Column("cached_prompt_tokens", "integer", lambda row: row.record.cached_prompt_tokens),
    Column("output_tokens", "integer", lambda row: row.record.output_tokens),
    Column("reasoning_tokens", "integer", lambda row: row.record.reasoning_tokens),
    Column("sequences", "integer", lambda row: row.record.sequences),
    Column("queue_ms", "integer", lambda row: row.record.queue_ms),
    Column("ttft_ms", "integer", lambda row: row.record.ttft_ms),
    Column("tpot_us", "integer", lambda row: row.record.tpot_us),
    Column("itl_max_us", "integer", lambda row: row.record.itl_max_us),
    Column("outcome", "text", lambda row: str(row.record.outcome)),
    Column("final", "boolean", lambda row: row.record.final),
    Column("finish_reason", "text", lambda row: row.record.finish_reason),
    Column("usage_source", "text", lambda row: str(row.record.usage_source)),
    Column("usage_flags", "_words", lambda row: " ".join(row.record.usage_flags)),
    Column("provider", "text", lambda row: row.record.provider),
    Column("worker_id", "text", lambda row: row.record.worker_id),
    Column("attempts", "integer", lambda row: len(row.record.attempts)),
    Column("billable", "boolean", lambda row: row.record.billable),
    Column("billing_policy", "integer", lambda row: row.record.billing_policy),
    Column("price_id", "bigint", lambda row: row.record.price_id),
    Column("cost_pico", "bigint", lambda row: row.record.cost_pico),
    Column("list_cost_pico", "bigint", lambda row: row.record.list_cost_pico),
    Column("currency", "text", lambda row: row.record.currency),
    Column("gateway_id", "text", lambda row: row.gateway_id),
    Column("boot", "bigint", lambda row: row.boot),
    Column("seq", "bigint", lambda row: row.seq),
)

ATTEMPT_COLUMNS: tuple[Column[AttemptOf], ...] = (
    Column("request_id", "uuid", lambda row: row.record.request_id),
    Column("admitted_at", "_ms", lambda row: row.record.admitted_at_ms),
    Column("choice", "integer", lambda row: row.attempt.choice),
    Column("attempt", "integer", lambda row: row.attempt.attempt),
    Column("worker_id", "text", lambda row: row.attempt.worker_id),
    Column("provider", "text", lambda row: row.attempt.provider),
    Column("started_at", "_ms", lambda row: row.attempt.started_at_ms),
    Column("ended_at", "_ms", lambda row: row.attempt.ended_at_ms),
    Column("outcome", "text", lambda row: str(row.attempt.outcome)),
    Column("prompt_tokens", "integer", lambda row: row.attempt.prompt_tokens),
    Column("output_tokens", "integer", lambda row: row.attempt.output_tokens),
    Column("provider_request_id", "text", lambda row: row.attempt.provider_request_id),
    Column("provider_cost_pico", "bigint", lambda row: row.attempt.provider_cost_pico),
    Column("usage_source", "text", lambda row: row.attempt.usage_source),
    Column("cached_prompt_tokens", "integer", lambda row: row.attempt.cached_prompt_tokens),
)


def _insert(table: str, columns: Sequence[Column[Row]], after: str) -> str:
    names = ", ".join(f'"{column.name}"' for column in columns)
    sent = ", ".join(
        f"${number}::{column.parameter_type}[]" for number, column in enumerate(columns, start=1)
    )
    stored = ", ".join(column.stored for column in columns)
    return (
        f"INSERT INTO {table} ({names}) SELECT {stored} FROM unnest({sent}) AS sent ({names})"  # noqa: S608 - names of columns, from the tables above
        f" ON CONFLICT {after}"
    )


_REPLACED = ", ".join(
    f'"{column.name}" = EXCLUDED."{column.name}"'
    for column in RECORD_COLUMNS
    if column.name not in ("request_id", "admitted_at")
)
RECORD_ON_CONFLICT = (
    f"(request_id, admitted_at) DO UPDATE SET {_REPLACED}, recorded_at = now()"
    " WHERE EXCLUDED.final AND NOT usage_record.final RETURNING request_id"
)
_INSERT_RECORDS = _insert("usage_record", RECORD_COLUMNS, RECORD_ON_CONFLICT)
_ATTEMPT_REPLACED = ", ".join(
    f'"{column.name}" = EXCLUDED."{column.name}"'
    for column in ATTEMPT_COLUMNS
    if column.name not in ("request_id", "admitted_at", "choice", "attempt")
)
# Only attempts of records that were written come here: one that is there is a provisional row's.
ATTEMPT_ON_CONFLICT = (
    f"(request_id, admitted_at, choice, attempt) DO UPDATE SET {_ATTEMPT_REPLACED}"
)
_INSERT_ATTEMPTS = _insert("usage_attempt", ATTEMPT_COLUMNS, ATTEMPT_ON_CONFLICT)


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
    attempts = attempts_of(unique, written)
    if attempts:
        await connection.exec_driver_sql(
            _INSERT_ATTEMPTS,
            tuple([column.read(row) for row in attempts] for column in ATTEMPT_COLUMNS),
        )
    return len(written)


def attempts_of(rows: Sequence[JournaledRecord], written: Collection[UUID]) -> list[AttemptOf]:
    """The attempts of those records that were written, in the records' order."""
    if len(written) < len(rows):
        rows = [row for row in rows if row.record.request_id in written]
    return [
        AttemptOf(row.record, attempt)
        for row in rows
        for attempt in one_per_number(row.record.attempts)
    ]


def one_per_number(attempts: Sequence[UsageAttempt]) -> list[UsageAttempt]:
    """The first of each choice and number."""
    if len(attempts) == 1:
        return list(attempts)
    chosen: dict[tuple[int, int], UsageAttempt] = {}
    for attempt in attempts:
        chosen.setdefault((attempt.choice, attempt.attempt), attempt)
    return [chosen[key] for key in sorted(chosen)]


def in_order(rows: Sequence[JournaledRecord]) -> list[JournaledRecord]:
    """One row a request, since one statement cannot write a row twice: its first final record, by
    request id. Every writer keeps to this order within a transaction."""
    # As numbers, which are in the order of Postgres's own uuid and compare at a tenth of the cost.
    chosen: dict[tuple[int, int], JournaledRecord] = {}
    for row in rows:
        key = (row.record.request_id.int, row.record.admitted_at_ms)
        if key not in chosen or (row.record.final and not chosen[key].record.final):
            chosen[key] = row
    return [chosen[key] for key in sorted(chosen)]

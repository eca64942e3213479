"""New usage records by COPY straight into their tables: the same rows as `insert_batch` writes, at
half of Postgres's work and a third of this process's.

COPY knows no ON CONFLICT: where one record is there already all of them go another way. That is
seldom, since a journal's watermark moves in the transaction that writes its rows. Rows are encoded
here, in COPY's binary format, and apart from the connection: in another thread, or ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.usage_record import UsageAttempt, UsageRecord
from billing.postgres.usage_insert import JournaledRecord, attempts_of, in_order

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_EPOCH_MS = 946_684_800_000
"""2000-01-01, from which Postgres counts microseconds."""
_TEXT_OID = 25

_INT4 = Struct(">ii")
_INT8 = Struct(">iq")
_BOOL = Struct(">i?")
_ARRAY = Struct(">iiii")
_DIMENSION = Struct(">ii")

_RECORD_NUMBERS = (
    *("request_id", "admitted_at", "ended_at", "prompt_tokens", "cached_prompt_tokens"),
    *("output_tokens", "reasoning_tokens", "sequences", "queue_ms", "attempts"),
)
_RECORD_FIXED = Struct(">h i16s iq iq ii ii ii ii ii ii ii")
_RECORD_TIMINGS = ("first_token_at", "ttft_ms", "tpot_us", "itl_max_us")
_TIMINGS = Struct(">iq ii ii ii")
_RECORD_MONEY = ("price_id", "cost_pico", "list_cost_pico")
_MONEY = Struct(">iq iq iq")
_RECORD_PLACE = ("boot", "seq")
_PLACE = Struct(">iq iq")
_RECORD_NAMES = (
    *("tenant_id", "api_key_id", "model", "class", "outcome", "final", "finish_reason"),
    *("usage_source", "usage_flags", "provider", "worker_id", "billable", "billing_policy"),
    *("currency", "gateway_id"),
)
RECORD_NAMES = (
    *_RECORD_NUMBERS,
    *_RECORD_TIMINGS,
    *_RECORD_MONEY,
    *_RECORD_PLACE,
    *_RECORD_NAMES,
)
"""Columns of a record in the order in which they are sent."""

_ATTEMPT_FIXED = Struct(">h i16s iq ii ii iq iq ii ii")
ATTEMPT_NAMES = (
    *("request_id", "admitted_at", "choice", "attempt", "started_at", "ended_at"),
    *("prompt_tokens", "output_tokens", "worker_id", "provider", "outcome", "usage_source"),
    *("provider_request_id", "provider_cost_pico", "cached_prompt_tokens"),
)
"""And of an attempt."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Records and their attempts as COPY takes them."""

    count: int
    records: bytes
    attempts: bytes | None
    """None where there are none."""


def encode(rows: Sequence[JournaledRecord]) -> Encoded:
    """One row a request, in the order of `in_order`. Needs no connection. Raises ValueError,
    TypeError, AttributeError or struct.error where a value is none that its column could hold."""
    unique = in_order(rows)
    names: dict[tuple[object, ...], bytes] = {}
    records = [_HEADER, *[_record(row, names) for row in unique], _TRAILER]
    names = {}
    attempts = [
        _attempt(each.record, each.attempt, names)
        for each in attempts_of(unique, [row.record.request_id for row in unique])
    ]
    return Encoded(
        len(unique),
        b"".join(records),
        b"".join([_HEADER, *attempts, _TRAILER]) if attempts else None,
    )


async def copy_new(connection: AsyncConnection, encoded: Encoded) -> int:
    """All rows, none of which may be there yet, or none; returns how many records that is.

    Raises the driver's own errors: UniqueViolationError where a record is there.
    """
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - gateway.adapters.postgres
    await _send(driver, "usage_record", RECORD_NAMES, encoded.records)
    if encoded.attempts is not None:
        await _send(driver, "usage_attempt", ATTEMPT_NAMES, encoded.attempts)
    return encoded.count


async def _send(driver: asyncpg.Connection, table: str, names: Sequence[str], data: bytes) -> None:
    # A view: asyncpg takes bytes for a path, and asks whatever can be read in a thread. Command,
    # data and end leave at once, so that it is one round trip.
    await driver.copy_to_table(table, source=memoryview(data), columns=names, format="binary")


def _record(row: JournaledRecord, names: dict[tuple[object, ...], bytes]) -> bytes:
    record, gateway_id, boot, seq = row
    fixed = _RECORD_FIXED.pack(
        len(RECORD_NAMES),
        16,
        record.request_id.int.to_bytes(16, "big"),
        8,
        (record.admitted_at_ms - _EPOCH_MS) * 1000,
        8,
        (record.ended_at_ms - _EPOCH_MS) * 1000,
        4,
        record.prompt_tokens,
        4,
        record.cached_prompt_tokens,
        4,
        record.output_tokens,
        4,
        record.reasoning_tokens,
        4,
        record.sequences,
        4,
        record.queue_ms,
        4,
        len(record.attempts),
    )
    # Few of these differ within a batch, and their hashes are known.
    key = (
        record.tenant_id,
        record.api_key_id,
        record.model,
        record.request_class,
        record.outcome,
        record.final,
        record.finish_reason,
        record.usage_source,
        record.usage_flags,
        record.provider,
        record.worker_id,
        record.billable,
        record.billing_policy,
        record.currency,
        gateway_id,
    )
    named = names.get(key)
    if named is None:
        named = names[key] = _record_names(record, gateway_id)
    return b"".join((fixed, _timings(record), _money(record), _place(boot, seq), named))


def _timings(record: UsageRecord) -> bytes:
    first, ttft, tpot, itl = (
        record.first_token_at_ms,
        record.ttft_ms,
        record.tpot_us,
        record.itl_max_us,
    )
    if first is None or ttft is None or tpot is None or itl is None:
        return b"".join((_instant(first), _int4(ttft), _int4(tpot), _int4(itl)))
    return _TIMINGS.pack(8, (first - _EPOCH_MS) * 1000, 4, ttft, 4, tpot, 4, itl)


def _money(record: UsageRecord) -> bytes:
    price, cost, listed = record.price_id, record.cost_pico, record.list_cost_pico
    if price is None or cost is None or listed is None:
        return b"".join((_int8(price), _int8(cost), _int8(listed)))
    return _MONEY.pack(8, price, 8, cost, 8, listed)


def _place(boot: int | None, seq: int | None) -> bytes:
    if boot is None or seq is None:
        return _int8(boot) + _int8(seq)
    return _PLACE.pack(8, boot, 8, seq)


def _record_names(record: UsageRecord, gateway_id: str) -> bytes:
    return b"".join(
        (
            _text(record.tenant_id),
            _text(record.api_key_id),
            _text(record.model),
            _text(record.request_class),
            _text(record.outcome),
            _BOOL.pack(1, record.final),
            _text(record.finish_reason),
            _text(record.usage_source),
            _words(record.usage_flags),
            _text(record.provider),
            _text(record.worker_id),
            _BOOL.pack(1, record.billable),
            _int4(record.billing_policy),
            _text(record.currency),
            _text(gateway_id),
        )
    )


def _attempt(
    record: UsageRecord, attempt: UsageAttempt, names: dict[tuple[object, ...], bytes]
) -> bytes:
    fixed = _ATTEMPT_FIXED.pack(
        len(ATTEMPT_NAMES),
        16,
        record.request_id.int.to_bytes(16, "big"),
        8,
        (record.admitted_at_ms - _EPOCH_MS) * 1000,
        4,
        attempt.choice,
        4,
        attempt.attempt,
        8,
        (attempt.started_at_ms - _EPOCH_MS) * 1000,
        8,
        (attempt.ended_at_ms - _EPOCH_MS) * 1000,
        4,
        attempt.prompt_tokens,
        4,
        attempt.output_tokens,
    )
    key = (attempt.worker_id, attempt.provider, attempt.outcome, attempt.usage_source)
    named = names.get(key)
    if named is None:
        named = names[key] = b"".join([_text(each) for each in key])
    return b"".join(
        (
            fixed,
            named,
            _text(attempt.provider_request_id),
            _int8(attempt.provider_cost_pico),
            _int4(attempt.cached_prompt_tokens),
        )
    )


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    data = value.encode()
    return len(data).to_bytes(4, "big") + data


def _words(words: Sequence[str]) -> bytes:
    if not words:
        return _ARRAY.pack(12, 0, 0, _TEXT_OID)
    items = b"".join([_text(word) for word in words])
    dimension = _DIMENSION.pack(len(words), 1)
    return _ARRAY.pack(12 + len(dimension) + len(items), 1, 0, _TEXT_OID) + dimension + items


def _instant(unix_ms: int | None) -> bytes:
    return _NULL if unix_ms is None else _INT8.pack(8, (unix_ms - _EPOCH_MS) * 1000)


def _int4(value: int | None) -> bytes:
    return _NULL if value is None else _INT4.pack(4, value)


def _int8(value: int | None) -> bytes:
    return _NULL if value is None else _INT8.pack(8, value)

"""Rows of usage in COPY's binary format, one by one, whatever is empty in them."""

from collections.abc import Sequence
from struct import Struct

from billing.domain.usage_record import UsageAttempt, UsageRecord
from billing.postgres.usage_insert import JournaledRecord

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
EPOCH_MS = 946_684_800_000
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
    *("prompt_tokens", "output_tokens", "cached_prompt_tokens", "worker_id", "provider"),
    *("outcome", "usage_source", "provider_request_id", "provider_cost_pico"),
)
"""And of an attempt."""

Names = dict[tuple[object, ...], bytes]
"""Those columns of a row of which few differ within a batch, as they are sent."""


def names_key(record: UsageRecord) -> tuple[object, ...]:
    """All that `record_names` writes of a record. Few of these differ within a batch, and their
    hashes are known."""
    return (
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
    )


def record_row(row: JournaledRecord, names: Names) -> bytes:
    """A record, its columns in the order of RECORD_NAMES."""
    record, gateway_id, boot, seq = row
    fixed = _RECORD_FIXED.pack(
        len(RECORD_NAMES),
        16,
        record.request_id.int.to_bytes(16, "big"),
        8,
        (record.admitted_at_ms - EPOCH_MS) * 1000,
        8,
        (record.ended_at_ms - EPOCH_MS) * 1000,
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
    key = (names_key(record), gateway_id)
    named = names.get(key)
    if named is None:
        named = names[key] = record_names(record, gateway_id)
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
    return _TIMINGS.pack(8, (first - EPOCH_MS) * 1000, 4, ttft, 4, tpot, 4, itl)


def _money(record: UsageRecord) -> bytes:
    price, cost, listed = record.price_id, record.cost_pico, record.list_cost_pico
    if price is None or cost is None or listed is None:
        return b"".join((_int8(price), _int8(cost), _int8(listed)))
    return _MONEY.pack(8, price, 8, cost, 8, listed)


def _place(boot: int | None, seq: int | None) -> bytes:
    if boot is None or seq is None:
        return _int8(boot) + _int8(seq)
    return _PLACE.pack(8, boot, 8, seq)


def record_names(record: UsageRecord, gateway_id: str) -> bytes:
    """The last columns of a record."""
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


def attempt_row(record: UsageRecord, attempt: UsageAttempt, names: Names) -> bytes:
    """An attempt, its columns in the order of ATTEMPT_NAMES."""
    fixed = _ATTEMPT_FIXED.pack(
        len(ATTEMPT_NAMES),
        16,
        record.request_id.int.to_bytes(16, "big"),
        8,
        (record.admitted_at_ms - EPOCH_MS) * 1000,
        4,
        attempt.choice,
        4,
        attempt.attempt,
        8,
        (attempt.started_at_ms - EPOCH_MS) * 1000,
        8,
        (attempt.ended_at_ms - EPOCH_MS) * 1000,
        4,
        attempt.prompt_tokens,
        4,
        attempt.output_tokens,
    )
    key = (
        attempt.worker_id,
        attempt.provider,
        attempt.outcome,
        attempt.usage_source,
        attempt.provider_request_id,
        attempt.provider_cost_pico,
    )
    named = names.get(key)
    if named is None:
        named = names[key] = attempt_names(attempt)
    return b"".join((fixed, _int4(attempt.cached_prompt_tokens), named))


def attempt_names(attempt: UsageAttempt) -> bytes:
    """The last columns of an attempt."""
    return b"".join(
        (
            _text(attempt.worker_id),
            _text(attempt.provider),
            _text(attempt.outcome),
            _text(attempt.usage_source),
            _text(attempt.provider_request_id),
            _int8(attempt.provider_cost_pico),
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
    return _NULL if unix_ms is None else _INT8.pack(8, (unix_ms - EPOCH_MS) * 1000)


def _int4(value: int | None) -> bytes:
    return _NULL if value is None else _INT4.pack(4, value)


def _int8(value: int | None) -> bytes:
    return _NULL if value is None else _INT8.pack(8, value)

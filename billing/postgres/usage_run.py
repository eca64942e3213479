"""A run of a journal in COPY's binary format: the bytes that `encode` gives, at half of its cost.

Nearly all rows lack nothing: such a row is packed in one piece. Whatever else a row is, and a run
that tells of a request twice, goes the way that knows every case.
"""

import struct
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Protocol, overload

from billing.domain.usage_record import UsageAttempt, UsageRecord
from billing.postgres.usage_binary import (
    ATTEMPT_NAMES,
    EPOCH_MS,
    RECORD_NAMES,
    Names,
    attempt_names,
    attempt_row,
    names_key,
    record_names,
    record_row,
)
from billing.postgres.usage_direct import Encoded, encode, framed
from billing.postgres.usage_insert import JournaledRecord, one_per_number

_RECORD = Struct(">h i16s iq iq ii ii ii ii ii ii ii iq ii ii ii iq iq iq iq iq")
_ATTEMPT = Struct(">h i16s iq ii ii iq iq ii ii ii")
_NOT_USUAL = (struct.error, TypeError)
"""What packing raises for a value that is None."""


class Ended(Protocol):
    """An end as a journal has it: its number and its record."""

    @property
    def seq(self) -> int: ...

    @property
    def body(self) -> UsageRecord: ...


class Run(Sequence[JournaledRecord]):
    """Ends of one boot of a gateway's journal as rows, each made when it is asked for: where all
    goes by COPY none ever is."""

    def __init__(self, ended: Sequence[Ended], gateway_id: str, boot: int) -> None:
        self.ended = ended
        self.gateway_id = gateway_id
        self.boot = boot

    def __len__(self) -> int:
        return len(self.ended)

    @overload
    def __getitem__(self, at: int) -> JournaledRecord: ...

    @overload
    def __getitem__(self, at: slice) -> "Run": ...

    def __getitem__(self, at: int | slice) -> "JournaledRecord | Run":
        if isinstance(at, slice):
            return Run(self.ended[at], self.gateway_id, self.boot)
        return self._row(self.ended[at])

    def __iter__(self) -> Iterator[JournaledRecord]:
        return map(self._row, self.ended)

    def _row(self, end: Ended) -> JournaledRecord:
        return JournaledRecord(end.body, self.gateway_id, self.boot, end.seq)


def encode_run(run: Run) -> Encoded:
    """As `encode(run)`, to the byte, and it raises what that does."""
    records: list[bytes] = []
    attempts: list[bytes] = []
    request_ids: set[bytes] = set()
    names: Names = {}
    attempts_names: Names = {}
    for end in run.ended:
        record = end.body
        request_id = record.request_id.int.to_bytes(16, "big")
        request_ids.add(request_id)
        admitted_us = (record.admitted_at_ms - EPOCH_MS) * 1000
        records.append(_record(run, end, request_id, admitted_us, names))
        tried = record.attempts
        attempts += [
            _attempt(record, request_id, admitted_us, attempt, attempts_names)
            for attempt in (tried if len(tried) == 1 else one_per_number(tried))
        ]
    if len(request_ids) < len(records):
        return encode(run)
    # All begin with what orders them, big end first: the order of `in_order`.
    records.sort()
    attempts.sort()
    return framed(records, attempts)


def _record(run: Run, end: Ended, request_id: bytes, admitted_us: int, names: Names) -> bytes:
    record = end.body
    key = names_key(record)
    named = names.get(key)
    if named is None:
        named = names[key] = record_names(record, run.gateway_id)
    try:
        packed = _RECORD.pack(
            len(RECORD_NAMES), 16, request_id, 8, admitted_us,
            8, (record.ended_at_ms - EPOCH_MS) * 1000, 4, record.prompt_tokens,
            4, record.cached_prompt_tokens, 4, record.output_tokens, 4, record.reasoning_tokens,
            4, record.sequences, 4, record.queue_ms, 4, len(record.attempts),
            8, (record.first_token_at_ms - EPOCH_MS) * 1000,  # type: ignore[operator]
            4, record.ttft_ms, 4, record.tpot_us, 4, record.itl_max_us,
            8, record.price_id, 8, record.cost_pico, 8, record.list_cost_pico,
            8, run.boot, 8, end.seq,
        )  # fmt: skip
    except _NOT_USUAL:
        return record_row(JournaledRecord(record, run.gateway_id, run.boot, end.seq), {})
    return packed + named


def _attempt(
    record: UsageRecord, request_id: bytes, admitted_us: int, attempt: UsageAttempt, names: Names
) -> bytes:
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
    try:
        packed = _ATTEMPT.pack(
            len(ATTEMPT_NAMES), 16, request_id, 8, admitted_us,
            4, attempt.choice, 4, attempt.attempt,
            8, (attempt.started_at_ms - EPOCH_MS) * 1000,
            8, (attempt.ended_at_ms - EPOCH_MS) * 1000,
            4, attempt.prompt_tokens, 4, attempt.output_tokens, 4, attempt.cached_prompt_tokens,
        )  # fmt: skip
    except _NOT_USUAL:
        return attempt_row(record, attempt, {})
    return packed + named

"""Admissions and usage records for tests, and a disk that fails when told to."""

import os
import secrets
import time
from pathlib import Path

import msgspec

from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord, UsageSource
from gateway.adapters.journal.storage import Storage
from gateway.domain.lease import Admitted
from gateway.domain.request_id import request_id


def an_admission(at_ms: int | None = None, **changes: object) -> Admitted:
    """A request admitted at `at_ms` (default: now)."""
    arrival = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    admission = Admitted(
        request_id=request_id(arrival, secrets.randbits(74)),
        tenant_id="acme",
        api_key_id="key-1",
        model="smollm2-135m",
        request_class="interactive",
        admitted_at_ms=arrival,
        prompt_tokens=12,
        reserved_tokens=112,
        sequences=1,
        queue_ms=3,
    )
    return msgspec.structs.replace(admission, **changes)


def a_record(admission: Admitted | None = None, **changes: object) -> UsageRecord:
    """How `admission` (default: one of now) ended: completed, with one attempt."""
    begun = admission or an_admission()
    record = UsageRecord(
        request_id=begun.request_id,
        tenant_id=begun.tenant_id,
        api_key_id=begun.api_key_id,
        model=begun.model,
        request_class=begun.request_class,
        admitted_at_ms=begun.admitted_at_ms,
        first_token_at_ms=begun.admitted_at_ms + 40,
        ended_at_ms=begun.admitted_at_ms + 250,
        prompt_tokens=12,
        cached_prompt_tokens=4,
        output_tokens=20,
        queue_ms=begun.queue_ms,
        ttft_ms=40,
        tpot_us=11_000,
        itl_max_us=15_000,
        outcome=Outcome.COMPLETED,
        finish_reason="stop",
        usage_source=UsageSource.ENGINE_FINAL,
        worker_id="local-0",
        billable=True,
        billing_policy=1,
        attempts=(
            UsageAttempt(
                attempt=1,
                worker_id="local-0",
                started_at_ms=begun.admitted_at_ms + 5,
                ended_at_ms=begun.admitted_at_ms + 250,
                outcome=Outcome.COMPLETED,
                prompt_tokens=12,
                output_tokens=20,
            ),
        ),
    )
    return msgspec.structs.replace(record, **changes)


class FailingStorage(Storage):
    """The real disk, except for the calls whose errno is set. Nothing else is faked."""

    def __init__(self) -> None:
        self.write_errno = 0
        self.short_write_bytes: int | None = None
        """A failing write lets so many bytes through first."""
        self.sync_errno = 0
        self.reserve_errno = 0
        self.create_errno = 0
        self.syncs = 0

    def create(self, path: Path) -> int:
        _fail(self.create_errno)
        return super().create(path)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        if self.write_errno and self.short_write_bytes is not None:
            super().write(descriptor, data[: self.short_write_bytes], offset)
        _fail(self.write_errno)
        super().write(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        _fail(self.sync_errno)
        self.syncs += 1
        super().sync(descriptor)

    def reserve(self, descriptor: int, offset: int, length: int) -> None:
        _fail(self.reserve_errno)
        super().reserve(descriptor, offset, length)


def _fail(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))

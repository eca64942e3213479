"""Requests of ordinary size as a journal takes them: an admission and an end with one attempt."""

import secrets
import time

from billing.domain.policy import CURRENT_POLICY
from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord, UsageSource
from gateway.domain.lease import Admitted
from gateway.domain.request_id import request_id

WORKER = "h100-3"


def an_admission() -> Admitted:
    """Of a new request, now."""
    arrival_ms = time.time_ns() // 1_000_000
    return Admitted(
        request_id=request_id(arrival_ms, secrets.randbits(74)),
        tenant_id=f"tenant-{secrets.randbelow(50)}",
        api_key_id="key_0123456789",
        model="llama-3.3-70b-instruct",
        request_class="interactive",
        admitted_at_ms=arrival_ms,
        prompt_tokens=900,
        reserved_tokens=1400,
        sequences=1,
        currency="USD",
    )


def an_end(entry: Admitted) -> UsageRecord:
    """How it ended, rated."""
    began, ended = entry.admitted_at_ms, entry.admitted_at_ms + 9000
    attempt = UsageAttempt(
        attempt=1,
        worker_id=WORKER,
        started_at_ms=began + 5,
        ended_at_ms=ended,
        outcome=Outcome.COMPLETED,
        prompt_tokens=900,
        output_tokens=280,
        usage_source=UsageSource.ENGINE_FINAL,
        cached_prompt_tokens=512,
    )
    return UsageRecord(
        request_id=entry.request_id,
        tenant_id=entry.tenant_id,
        api_key_id=entry.api_key_id,
        model=entry.model,
        request_class=entry.request_class,
        admitted_at_ms=began,
        ended_at_ms=ended,
        first_token_at_ms=began + 300,
        prompt_tokens=900,
        cached_prompt_tokens=512,
        output_tokens=280,
        ttft_ms=300,
        tpot_us=31_000,
        itl_max_us=90_000,
        outcome=Outcome.COMPLETED,
        finish_reason="stop",
        usage_source=UsageSource.ENGINE_FINAL,
        worker_id=WORKER,
        billable=True,
        billing_policy=CURRENT_POLICY,
        price_id=7,
        cost_pico=1_404_000_000,
        list_cost_pico=1_404_000_000,
        currency="USD",
        attempts=(attempt,),
    )

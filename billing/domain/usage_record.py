"""The usage record: one per admitted request, the contract between gateway and billing."""

from enum import StrEnum
from uuid import UUID

import msgspec


class Outcome(StrEnum):
    """How an admitted request ended."""

    COMPLETED = "completed"
    """The engine's finish was read, delivered to the client or not."""
    CLIENT_CANCELLED = "client_cancelled"
    WORKER_FAILED = "worker_failed"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    """Refused by the engine after admission: zero tokens, never billed."""
    GATEWAY_LOST = "gateway_lost"
    """The gateway died, was stopped or failed before the end was known."""
    TAKEN_BACK = "taken_back"
    """Of an attempt only, never of a request: batch gave its place to an interactive request before
    its first token, and was tried again."""


class UsageSource(StrEnum):
    """Where a record's token counts come from, the most trustworthy first."""

    ENGINE_FINAL = "engine_final"
    """The engine's own last usage of a finished or aborted request."""
    ENGINE_PROGRESS = "engine_progress"
    """The last usage the engine sent before the stream broke: a lower bound."""
    COUNTED = "counted"
    """Content deltas counted by the gateway: a lower bound, since a delta holds a token or more."""
    ESTIMATED = "estimated"
    """Nothing was seen from the engine; the prompt is what admission counted, the output 0."""


class UsageFlag(StrEnum):
    """What was odd about a request's usage, or about the way that its record came."""

    CACHED_OVER_PROMPT = "cached_over_prompt"
    CACHED_UNKNOWN = "cached_unknown"
    COUNT_INFERRED = "count_inferred"
    COUNT_OUT_OF_RANGE = "count_out_of_range"
    CUT_SHORT = "cut_short"
    END_UNKNOWN = "end_unknown"
    FINISH_UNKNOWN = "finish_unknown"
    PROMPT_COUNTED = "prompt_counted"
    PROMPT_OVER_COUNT = "prompt_over_count"
    PROMPT_UNKNOWN = "prompt_unknown"
    RATED_LATER = "rated_later"
    REAPED = "reaped"
    REASONING_OVER_OUTPUT = "reasoning_over_output"
    SENT_DIRECTLY = "sent_directly"
    SIMULATED = "simulated"
    USAGE_FELL = "usage_fell"


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one admitted request used.

    Times are Unix milliseconds (UTC), token counts are the engine's tokens. `admitted_at_ms` is the
    arrival: the instant in `request_id` (UUIDv7), and the only one that decides price and period.
    """

    request_id: UUID
    tenant_id: str
    api_key_id: str
    model: str
    request_class: str
    """`interactive` or `batch`."""
    admitted_at_ms: int
    ended_at_ms: int
    first_token_at_ms: int | None = None
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    sequences: int = 1
    queue_ms: int = 0
    ttft_ms: int | None = None
    """Arrival to first content token."""
    tpot_us: int | None = None
    """Mean time per output token after the first; None below two tokens."""
    itl_max_us: int | None = None
    """Longest gap between two content chunks."""
    outcome: Outcome
    final: bool = True
    """False only on a reaper's provisional record."""
    finish_reason: str | None = None
    usage_source: UsageSource
    usage_flags: tuple[str, ...] = ()
    """`UsageFlag`s, and those of newer releases."""
    provider: str = "self"
    """`self` or `hosted:<name>`."""
    worker_id: str | None = None
    billable: bool
    billing_policy: int
    """Version of the policy table that decided `billable`."""
    price_id: int | None = None
    """The price it was rated at, for good."""
    cost_pico: int | None = None
    """What the tenant owes, in pico-units of `currency`: 0 where not billable, None where there was
    no price, and in records of a release that did not rate."""
    list_cost_pico: int | None = None
    """What the price book made of the tokens, billable or not."""
    currency: str | None = None
    """The tenant's when it was admitted."""
    attempts: tuple["UsageAttempt", ...] = ()


class UsageAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One stream opened upstream for a request. `attempt` counts from 1 within the request."""

    attempt: int
    choice: int = 0
    worker_id: str
    provider: str = "self"
    started_at_ms: int
    ended_at_ms: int
    outcome: Outcome
    prompt_tokens: int = 0
    output_tokens: int = 0
    provider_request_id: str | None = None
    provider_cost_pico: int | None = None
    usage_source: UsageSource | None = None
    """Where its counts come from; None in journals of a release that did not say."""
    cached_prompt_tokens: int | None = None
    """None where nobody said."""

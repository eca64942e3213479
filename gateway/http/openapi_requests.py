"""The shapes of the answers about single requests, which `gateway/http/request_views.py` makes.
Times are RFC 3339 in UTC, amounts texts in their currency."""

import msgspec

from gateway.domain.tenant import RequestClass
from gateway.http.openapi_answers import Instant, PriceAnswer


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class RequestTokens(_Answer):
    """Cached tokens are some of the prompt's, reasoning tokens some of the output's."""

    prompt: int
    cached_prompt: int
    output: int
    reasoning: int


class RequestSummary(_Answer):
    """A request that has ended. `provider` and `worker_id` are null to a tenant's own users, and
    `cost` to those who see no money; it is null too where there was no price."""

    id: str
    tenant_id: str
    api_key_id: str
    model: str
    request_class: RequestClass = msgspec.field(name="class")
    arrived_at: Instant
    ended_at: Instant
    queued_ms: int
    ttft_ms: int | None
    tpot_us: int | None
    outcome: str
    finish_reason: str | None
    final: bool
    tokens: RequestTokens
    provider: str | None
    worker_id: str | None
    attempts: int
    billable: bool
    currency: str | None
    cost: str | None


class RequestPageAnswer(_Answer):
    """Newest first. A page may end before it is full: `next_cursor` goes on from
    `looked_through`, the arrival of the last request that was looked at."""

    items: list[RequestSummary]
    next_cursor: str | None
    looked_through: Instant | None


class RequestAttempt(_Answer):
    """A stream that was opened for a request. `provider_cost` is what it cost at a hosted provider,
    in USD."""

    attempt: int
    choice: int
    worker_id: str
    provider: str
    began_at: Instant
    ended_at: Instant
    outcome: str
    prompt_tokens: int
    cached_prompt_tokens: int | None
    output_tokens: int
    usage_source: str | None
    provider_request_id: str | None
    provider_cost: str | None


class JournalPlace(_Answer):
    """Which record of which journal said so."""

    gateway_id: str
    boot: int
    seq: int


class RequestInvoiceLine(_Answer):
    """A line that the request is in, and how much of it the request is."""

    position: int
    kind: str
    unit: str
    quantity: int
    line_quantity: int


class RequestInvoice(_Answer):
    """The invoice that took the request."""

    id: str
    number: str | None
    month: str
    status: str
    lines: list[RequestInvoiceLine]


class RequestMoney(_Answer):
    """What a request costs. `rated` is `at_end`, `later` (a price was written for its time), or
    `never` (there is no price for it). `list_cost` is what its tokens cost anyone, paid for or
    not."""

    currency: str | None
    cost: str | None
    list_cost: str | None
    rated: str
    price: PriceAnswer | None
    invoice: RequestInvoice | None


class RequestAnswer(_Answer):
    """The life of one request; nothing of prompts or answers is kept anywhere.

    `state` is `running`, `lost` (its gateway is gone: its end is written when that is known) or
    `ended`. `known_from` is `record` (Postgres) or `copy` (what its gateway told the store, before
    Postgres has it); of a record `accounted_by` is `journal`, `gateway` (recorded another way), or
    `reaper` (another gateway wrote what was known when its own was gone). `class` is the one that
    it was served as; what it had asked for is not kept. Null is what is not known yet or did not
    happen; `attempts`, `provider`, `worker_id`, `gateway_id` and `journal` are null to a tenant's
    own users, `money` to those who see none and before there is a record.
    """

    id: str
    state: str
    known_from: str
    accounted_by: str | None
    tenant_id: str
    api_key_id: str
    model: str
    request_class: RequestClass = msgspec.field(name="class")
    sequences: int
    arrived_at: Instant
    queued_ms: int
    first_token_at: Instant | None
    ended_at: Instant | None
    recorded_at: Instant | None
    ttft_ms: int | None
    tpot_us: int | None
    longest_gap_us: int | None
    outcome: str | None
    finish_reason: str | None
    tokens: RequestTokens
    usage_source: str | None
    usage_flags: list[str]
    final: bool
    came_late: bool
    billable: bool | None
    billing_policy: int | None
    provider: str | None
    worker_id: str | None
    gateway_id: str | None
    journal: JournalPlace | None
    attempts: list[RequestAttempt] | None
    money: RequestMoney | None

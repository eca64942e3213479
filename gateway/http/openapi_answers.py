"""The shapes of the admin API's answers, for the OpenAPI document; `administration/views.py` makes
the answers, and a test holds the two together. Times are RFC 3339 in UTC."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gateway.domain.account import Role
from gateway.domain.tenant import BillingProfile, EngineKind, Limits, RequestClass, TenantLimits

Item = TypeVar("Item")
Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class TenantAnswer(_Answer):
    """A tenant with its limits."""

    id: str
    name: str
    suspended: bool
    currency: str
    time_zone: str
    billing_profile: BillingProfile
    limits: TenantLimits
    limits_version: int


class KeyAnswer(_Answer):
    """A key without its secret."""

    id: str
    tenant_id: str
    name: str
    request_class: RequestClass = msgspec.field(name="class")
    secret_hint: str
    models: list[str] | None
    ip_allow: list[str] | None
    created_at: Instant | None
    expires_at: Instant | None
    revoked_at: Instant | None
    rotated_to: str | None
    limits: Limits
    limits_version: int


class NewKeyAnswer(KeyAnswer):
    """A key that was just made: the only answer that shows its secret."""

    secret: str


class ModelAnswer(_Answer):
    """A served model."""

    id: str
    context_tokens: int
    max_output_tokens: int
    default_output_tokens: int


class WorkerAnswer(_Answer):
    """A worker; of its API key only whether there is one. `class` is the one that it is reserved
    for, null where it serves both."""

    id: str
    model: str
    url: str
    kind: EngineKind
    engine: str
    draining: bool
    request_class: RequestClass | None = msgspec.field(name="class")
    has_api_key: bool


class HostedPriceAnswer(_Answer):
    """USD per million tokens, as texts in decimal digits."""

    input: str
    cached_input: str | None
    output: str


class HostedModelAnswer(_Answer):
    """The provider's name of one of our models, and what it costs there."""

    name: str
    price: HostedPriceAnswer | None


class HostedAnswer(_Answer):
    """A hosted provider; of its API key only whether there is one."""

    name: str
    url: str
    models: dict[str, HostedModelAnswer]
    has_api_key: bool
    rank: int
    enabled: bool
    connect_timeout_ms: int
    first_event_timeout_ms: int
    stall_timeout_ms: int
    output_limit_field: str
    extensions: list[str]


class PriceAnswer(_Answer):
    """A price, in its currency per million tokens and (`request`) per request, as texts in decimal
    digits; null where it is withdrawn."""

    id: int
    model: str
    provider: str
    currency: str
    tenant_id: str | None
    plan: str | None
    request_class: RequestClass | None = msgspec.field(name="class")
    input: str | None
    cached_input: str | None
    output: str | None
    reasoning: str | None
    request: str | None
    withdrawn: bool
    effective_from: Instant


class PlanAnswer(_Answer):
    """The plan that a tenant is on from an instant on; null: none."""

    tenant_id: str
    plan: str | None
    effective_from: Instant


class UserAnswer(_Answer):
    """A user."""

    id: str
    email: str
    role: Role
    disabled: bool
    created_at: Instant


class NewTokenAnswer(_Answer):
    """A token that was just made: the only answer that shows it."""

    user_id: str
    name: str
    token: str


class AuditAnswer(_Answer):
    """One change."""

    id: int
    at: Instant
    actor: str
    action: str
    subject_kind: str
    subject_id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Page(_Answer, Generic[Item]):
    """A page of a list; `next_cursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None


class ScopeUseAnswer(_Answer):
    """One scope's limits and use; null is no limit, and of money what is not known now. Amounts are
    texts in `currency`; the month is one of the tenant's time zone."""

    max_sequences: int | None
    sequences_running: int
    tpm: int | None
    tokens_last_minute: int
    rpm: int | None
    requests_last_minute: int
    reset_ms: int
    monthly_budget: str | None
    spent_this_month: str | None
    reserved_this_month: str | None
    remaining_this_month: str | None
    currency: str
    month_resets_at: Instant | None


class LiveTenant(ScopeUseAnswer):
    """A tenant that holds something or waits. `sequences_queued` are its requests that wait, those
    for its own limits included; null where a model's queue could not be looked at."""

    id: str
    sequences_queued: int | None


class QueuedTokens(_Answer):
    """Tokens that wait, by class."""

    interactive: int
    batch: int


class LiveClass(_Answer):
    """What of one class waits for a place. Weighted tokens count in the order: output twice.
    `predicted_wait_ms` is of a request behind all of them, null while nothing is known."""

    requests: int
    weighted_tokens: int
    oldest_wait_ms: int | None
    predicted_wait_ms: int | None


class LiveQueue(_Answer):
    """By class."""

    interactive: LiveClass
    batch: LiveClass


class LivePool(_Answer):
    """A pool's queue, over all gateways. `class` is the one that its workers are reserved for, null
    of the model's others. `parked` wait for their own tenant's limits; `sequences_running` have
    places on workers. All of it null where it could not be looked at."""

    model: str
    request_class: RequestClass | None = msgspec.field(name="class")
    queued_tokens: QueuedTokens | None
    queue: LiveQueue | None
    parked: int | None
    sequences_running: int | None


class LivePlaces(_Answer):
    """What places on a worker hold, of all gateways, and its ceilings; null is no ceiling. Batch is
    sent up to `batch_max` sequences of any class, interactive up to `sequences_max`."""

    sequences: int
    sequences_max: int | None
    batch_max: int | None
    tokens: int
    tokens_max: int | None


class LiveWorker(_Answer):
    """A worker as this gateway sees it; null is what the engine does not report. `places` are the
    queue's own account of it, null where it has none."""

    id: str
    model: str
    engine: str
    healthy: bool
    draining: bool
    request_class: RequestClass | None = msgspec.field(name="class")
    running: int | None
    waiting: int | None
    in_flight: int
    kv_used_tokens: int | None
    kv_total_tokens: int | None
    load_age_ms: int | None
    version: str | None
    cache_report: bool | None
    priority_order: str | None
    context_tokens: int | None
    places: LivePlaces | None


class LiveHosted(_Answer):
    """A hosted provider; `circuit` is this gateway's own: closed, open or half_open."""

    name: str
    enabled: bool
    models: list[str]
    circuit: str


class LiveAnswer(_Answer):
    """What runs now, over all gateways, and what is degraded."""

    tenants: list[LiveTenant]
    pools: list[LivePool]
    workers: list[LiveWorker]
    hosted: list[LiveHosted]
    degraded: list[str]


class HealthAnswer(_Answer):
    """`/healthz`."""

    status: str


class ReadinessAnswer(_Answer):
    """`/readyz`: `ready`, `degraded` or `not_ready`, and what is degraded."""

    status: str
    degraded: list[str]

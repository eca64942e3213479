"""The shapes of the admin API's answers, for the OpenAPI document; `administration/views.py` makes
the answers, and a test holds the two together. Times are RFC 3339 in UTC."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gateway.domain.account import Role
from gateway.domain.tenant import BillingProfile, EngineKind, Limits, RequestClass

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
    limits: Limits
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
    """A worker; of its API key only whether there is one."""

    id: str
    model: str
    url: str
    kind: EngineKind
    engine: str
    draining: bool
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
    """A list price, in its currency per million tokens, as texts in decimal digits."""

    id: int
    model: str
    provider: str
    currency: str
    input: str
    cached_input: str | None
    output: str
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
    """A tenant that holds something."""

    id: str
    sequences_queued: int


class QueuedTokens(_Answer):
    """Tokens that wait, by class."""

    interactive: int
    batch: int


class LivePool(_Answer):
    """A model's queue."""

    model: str
    queued_tokens: QueuedTokens


class LiveWorker(_Answer):
    """A worker as this gateway sees it; null is what the engine does not report."""

    id: str
    model: str
    engine: str
    healthy: bool
    draining: bool
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

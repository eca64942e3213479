"""The shapes of the admin API's answers, for the OpenAPI document; `administration/views.py` makes
the answers, and a test holds the two together. Times are RFC 3339 in UTC."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gateway.domain.account import Role
from gateway.domain.confirmation import Unknown
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


class RevokedAnswer(_Answer):
    """A revoked key, and which gateways refuse it already, by their ids. `unconfirmed` is null, and
    `unknown` says why, where it is not known which gateways there are."""

    id: str
    revoked_at: Instant
    confirmed: list[str]
    unconfirmed: list[str] | None
    unknown: Unknown | None


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
    tenant_id: str | None
    """The tenant of a tenant's role."""
    disabled: bool
    created_at: Instant
    last_login_at: Instant | None
    locked_until: Instant | None
    """Until when no password is taken, after too many wrong ones; it may be past."""


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
    tenant_id: str | None
    change_id: str | None
    hash: str
    withheld: bool
    """Whether `before` and `after` say of money, which the caller may not read."""


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


class HealthAnswer(_Answer):
    """`/healthz`."""

    status: str


class ReadinessAnswer(_Answer):
    """`/readyz`: `ready`, `degraded` or `not_ready`, and what is degraded."""

    status: str
    degraded: list[str]

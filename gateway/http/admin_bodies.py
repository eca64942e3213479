"""What the admin API takes: bodies of requests, read strictly."""

from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec
from litestar import Request
from msgspec import UNSET, UnsetType

from gateway.domain.account import Role
from gateway.domain.field_errors import unprocessable_field
from gateway.domain.instants import ms_of
from gateway.domain.tenant import BillingProfile, EngineKind, RequestClass
from gateway.errors import InvalidRequest, Unprocessable

Body = TypeVar("Body")


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class TenantBody(_Strict):
    """A new tenant."""

    id: str
    name: str
    currency: str = "USD"
    time_zone: str = "UTC"
    billing_profile: BillingProfile = BillingProfile()
    limits: dict[str, Any] = {}


class TenantChanges(_Strict):
    """What changes of a tenant; what is absent stays."""

    name: str | UnsetType = UNSET
    suspended: bool | UnsetType = UNSET
    currency: str | UnsetType = UNSET
    time_zone: str | UnsetType = UNSET
    billing_profile: BillingProfile | UnsetType = UNSET


class KeyBody(_Strict):
    """A new key."""

    name: str
    request_class: RequestClass = msgspec.field(name="class")
    expires_at: datetime | None = None
    models: list[str] | None = None
    ip_allow: list[str] | None = None


class RotationBody(_Strict):
    """For how long the old key goes on working: an hour where nothing is said."""

    grace_ms: int = 3_600_000


class ModelBody(_Strict):
    """A model."""

    id: str
    context_tokens: int
    max_output_tokens: int
    default_output_tokens: int = 256


class WorkerBody(_Strict):
    """A worker."""

    id: str
    model: str
    url: str
    kind: EngineKind = EngineKind.SGLANG
    engine: str = "sglang"
    api_key: str | None = None
    draining: bool = False
    request_class: RequestClass | None = msgspec.field(default=None, name="class")
    """Reserves it for requests of this class; null serves both."""


class DrainBody(_Strict):
    """Whether the worker drains."""

    draining: bool = True


class HostedPriceBody(_Strict):
    """USD per million tokens, as texts in decimal digits."""

    input: str
    output: str
    cached_input: str | None = None


class HostedModelBody(_Strict):
    """The provider's name of one of our models, and what it costs there."""

    name: str
    price: HostedPriceBody | None = None


class HostedBody(_Strict):
    """A hosted provider. Without `api_key` the stored one is kept; null removes it."""

    name: str
    url: str
    models: dict[str, HostedModelBody]
    api_key: str | UnsetType | None = UNSET
    rank: int = 0
    enabled: bool = True
    connect_timeout_ms: int = 5_000
    first_event_timeout_ms: int = 60_000
    stall_timeout_ms: int = 60_000
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extensions: list[str] = []


class PriceBody(_Strict):
    """A new price, in its currency per million tokens and (`request`) per request, as texts in
    decimal digits; of a tenant, of a plan or of neither, of a class or of both. Without
    `cached_input` a cached prompt token costs what any prompt token costs, without `reasoning` a
    reasoning token what any output token costs. With `withdrawn` there is none from then on."""

    model: str
    input: str | None = None
    output: str | None = None
    cached_input: str | None = None
    reasoning: str | None = None
    request: str | None = None
    provider: str = "self"
    currency: str = "USD"
    tenant_id: str | None = None
    plan: str | None = None
    request_class: RequestClass | None = msgspec.field(default=None, name="class")
    withdrawn: bool = False
    effective_from: datetime | None = None


class PlanBody(_Strict):
    """The plan that a tenant is on from an instant on; null: none."""

    tenant_id: str
    plan: str | None
    effective_from: datetime | None = None


class UserBody(_Strict):
    """A new user."""

    email: str
    role: Role
    password: str
    tenant_id: str | None = None
    """The tenant of a tenant's role; null for every other."""


class UserChanges(_Strict):
    """What changes of a user; what is absent stays."""

    role: Role | UnsetType = UNSET
    tenant_id: str | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


class TokenBody(_Strict):
    """A new token."""

    name: str
    scopes: list[str] | None = None
    """The permissions that it is held to; null: all that the user's role has."""
    expires_at: datetime | None = None


class PasswordBody(_Strict):
    """Another user's new password."""

    password: str


class OwnPasswordBody(_Strict):
    """One's own new password, from who knows the current one."""

    current_password: str
    password: str


class LoginBody(_Strict):
    """Who logs in."""

    email: str
    password: str


async def read_body(
    request: Request[Any, Any, Any], kind: type[Body], *, empty: Body | None = None
) -> Body:
    """The request's JSON body as `kind`; `empty` stands for no body at all.

    Raises InvalidRequest (400) where it is not JSON, Unprocessable (422) naming the field where it
    is not what is wanted.
    """
    raw = await request.body()
    if not raw.strip() and empty is not None:
        return empty
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest("the body is not valid JSON", code="malformed_json") from error
    return body_from(fields, kind)


def body_from(fields: object, kind: type[Body], *, prefix: str = "") -> Body:
    """Decoded JSON as `kind`. Raises Unprocessable naming the field, below `prefix`."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise unprocessable_field(error, prefix=prefix) from error


def instant_ms(instant: datetime | None, *, field: str) -> int | None:
    """Unix milliseconds of a time in a body, which must say its offset from UTC."""
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise Unprocessable(f"{field}: must end with Z or an offset from UTC", param=field)
    return ms_of(instant)


def unless_absent(value: Body | UnsetType) -> Body | None:
    """None for a field that was not sent."""
    return None if isinstance(value, UnsetType) else value

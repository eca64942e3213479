"""Rows of the directory's tables as the values that the rest of Weir knows, and back."""

from typing import Any

import msgspec
from sqlalchemy import Row, Text, cast
from sqlalchemy.sql.elements import ColumnElement

from gateway.adapters.tables import (
    api_key,
    app_user,
    audit_log,
    hosted_provider,
    model,
    tenant,
    user_session,
    user_token,
    worker,
)
from gateway.domain.account import AuditEntry, OpenSession, Role, User, UserToken
from gateway.domain.hosted import HostedProvider
from gateway.domain.instants import ms_of
from gateway.domain.tenant import (
    ApiKey,
    BillingProfile,
    EngineKind,
    Limits,
    Model,
    RequestClass,
    Tenant,
    Worker,
)

_limits_decoder = msgspec.json.Decoder(Limits)

# Limits come as text: equal ones, which most keys have, then become one object by `limits_from`.
TENANT_COLUMNS: tuple[ColumnElement[Any], ...] = (
    tenant.c.id,
    tenant.c.name,
    tenant.c.suspended_at,
    tenant.c.resumed_change,
    tenant.c.currency,
    tenant.c.time_zone,
    tenant.c.billing_profile,
    tenant.c.billing_terms,
    cast(tenant.c.limits, Text).label("limits_text"),
    tenant.c.limits_version,
    tenant.c.changed,
)
KEY_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(column for column in api_key.c if column.name != "limits"),
    cast(api_key.c.limits, Text).label("limits_text"),
)
MODEL_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(model.c)
WORKER_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(column for column in worker.c if column.name != "class"),
    worker.c["class"].label("request_class"),
)
HOSTED_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(hosted_provider.c)
USER_COLUMNS: tuple[ColumnElement[Any], ...] = (
    app_user.c.id,
    app_user.c.email,
    app_user.c.role,
    app_user.c.tenant_id,
    app_user.c.disabled_at,
    app_user.c.created_at,
    app_user.c.locked_until,
    app_user.c.last_login_at,
)
SESSION_COLUMNS: tuple[ColumnElement[Any], ...] = (
    user_session.c.id,
    user_session.c.created_at,
    user_session.c.seen_at,
    user_session.c.expires_at,
    user_session.c.address,
)
TOKEN_COLUMNS: tuple[ColumnElement[Any], ...] = (
    user_token.c.name,
    user_token.c.scopes,
    user_token.c.created_at,
    user_token.c.expires_at,
    user_token.c.last_used_at,
)
AUDIT_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(audit_log.c)


def tenant_from(row: Row[Any], known_limits: dict[str, Limits] | None = None) -> Tenant:
    """The tenant of a row of TENANT_COLUMNS."""
    return Tenant(
        id=row.id,
        name=row.name,
        suspended=row.suspended_at is not None,
        currency=row.currency,
        time_zone=row.time_zone,
        billing_profile=msgspec.convert(
            {**row.billing_profile, **row.billing_terms}, BillingProfile
        ),
        limits=_limits_from(row.limits_text, known_limits),
        limits_version=row.limits_version,
    )


def key_from(row: Row[Any], known_limits: dict[str, Limits] | None = None) -> ApiKey:
    """The API key of a row of KEY_COLUMNS."""
    return ApiKey(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        digest=bytes(row.digest),
        request_class=RequestClass(row._mapping["class"]),  # noqa: SLF001 - SQLAlchemy's public name
        models=None if row.models is None else tuple(row.models),
        ip_allow=None if row.ip_allow is None else tuple(row.ip_allow),
        expires_at_ms=ms_of(row.expires_at),
        revoked_at_ms=ms_of(row.revoked_at),
        rotated_to=row.rotated_to,
        secret_hint=row.secret_hint,
        created_at_ms=ms_of(row.created_at) or 0,
        limits=_limits_from(row.limits_text, known_limits),
        limits_version=row.limits_version,
    )


def model_from(row: Row[Any]) -> Model:
    """The model of a row of MODEL_COLUMNS."""
    return Model(
        id=row.id,
        context_tokens=row.context_tokens,
        max_output_tokens=row.max_output_tokens,
        default_output_tokens=row.default_output_tokens,
    )


def worker_from(row: Row[Any]) -> Worker:
    """The worker of a row of WORKER_COLUMNS."""
    reserved = row.request_class
    return Worker(
        id=row.id,
        model=row.model,
        url=row.url,
        kind=EngineKind(row.kind),
        engine=row.engine,
        api_key=row.api_key,
        draining=row.draining,
        request_class=None if reserved is None else RequestClass(reserved),
    )


def hosted_provider_from(row: Row[Any]) -> HostedProvider:
    """The hosted provider of a row of HOSTED_COLUMNS."""
    fields = {name: getattr(row, name) for name in HostedProvider.__struct_fields__}
    return msgspec.convert(fields, HostedProvider)


def user_from(row: Row[Any]) -> User:
    """The user of a row of USER_COLUMNS."""
    return User(
        id=row.id,
        email=row.email,
        role=Role(row.role),
        tenant_id=row.tenant_id,
        disabled=row.disabled_at is not None,
        created_at_ms=ms_of(row.created_at) or 0,
        locked_until_ms=ms_of(row.locked_until),
        last_login_at_ms=ms_of(row.last_login_at),
    )


def session_from(row: Row[Any]) -> OpenSession:
    """The session of a row of SESSION_COLUMNS."""
    return OpenSession(
        id=row.id,
        created_at_ms=ms_of(row.created_at) or 0,
        seen_at_ms=ms_of(row.seen_at) or 0,
        expires_at_ms=ms_of(row.expires_at) or 0,
        address=row.address,
    )


def token_from(row: Row[Any]) -> UserToken:
    """The token of a row of TOKEN_COLUMNS."""
    return UserToken(
        name=row.name,
        scopes=None if row.scopes is None else tuple(row.scopes),
        created_at_ms=ms_of(row.created_at) or 0,
        expires_at_ms=ms_of(row.expires_at),
        last_used_at_ms=ms_of(row.last_used_at),
    )


def audit_entry_from(row: Row[Any]) -> AuditEntry:
    """The audit entry of a row of AUDIT_COLUMNS."""
    return AuditEntry(
        id=row.id,
        at_ms=ms_of(row.at) or 0,
        actor=row.actor,
        action=row.action,
        subject_kind=row.subject_kind,
        subject_id=row.subject_id,
        before=row.before,
        after=row.after,
        tenant_id=row.tenant_id,
        change_id=row.change_id,
        hash=bytes(row.hash).hex(),
    )


def _limits_from(text: str, known: dict[str, Limits] | None) -> Limits:
    if known is None:
        return _limits_decoder.decode(text)
    limits = known.get(text)
    if limits is None:
        limits = known[text] = _limits_decoder.decode(text)
    return limits

"""What the admin API and the command line show: no secret, no digest; times in UTC as RFC 3339."""

from typing import Any

import msgspec

from billing.domain.money import show_amount
from billing.domain.price_book import Membership, Price
from gateway.administration.hosted_prices import show_price
from gateway.administration.pages import Page
from gateway.domain.account import AuditEntry, OpenSession, User, UserToken
from gateway.domain.hosted import HostedPrice, HostedProvider
from gateway.domain.instants import shown
from gateway.domain.tenant import (
    ApiKey,
    DataPolicy,
    Limits,
    Model,
    Tenant,
    TenantLimits,
    Worker,
    waiting_of,
)

View = dict[str, Any]


def tenant_limits(limits: Limits) -> TenantLimits:
    """A tenant's limits as they hold: where none is stored its data policy is the strict one, and
    its requests wait as the defaults say. A key's stay as they are: None there means that its
    tenant's holds."""
    policy = limits.data_policy or DataPolicy.SELF_HOSTED_ONLY
    fields = {**msgspec.structs.asdict(limits), **waiting_of(limits)._asdict()}
    return TenantLimits(**{**fields, "data_policy": policy})


def tenant_view(tenant: Tenant) -> View:
    """A tenant with its limits."""
    return {
        "id": tenant.id,
        "name": tenant.name,
        "suspended": tenant.suspended,
        "currency": tenant.currency,
        "time_zone": tenant.time_zone,
        "billing_profile": msgspec.to_builtins(tenant.billing_profile),
        "limits": msgspec.to_builtins(tenant_limits(tenant.limits)),
        "limits_version": tenant.limits_version,
    }


def key_view(key: ApiKey, *, secret: str | None = None) -> View:
    """A key; `secret` only in the answer to what made it."""
    view = {
        "id": key.id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "class": key.request_class.value,
        "secret_hint": key.secret_hint,
        "models": None if key.models is None else list(key.models),
        "ip_allow": None if key.ip_allow is None else list(key.ip_allow),
        "created_at": shown(key.created_at_ms),
        "expires_at": shown(key.expires_at_ms),
        "revoked_at": shown(key.revoked_at_ms),
        "rotated_to": key.rotated_to,
        "limits": msgspec.to_builtins(key.limits),
        "limits_version": key.limits_version,
    }
    return view if secret is None else {"id": key.id, "secret": secret, **view}


def model_view(model: Model) -> View:
    """A model."""
    view: View = msgspec.to_builtins(model)
    return view


def worker_view(worker: Worker) -> View:
    """A worker; of its API key only whether there is one."""
    view: View = msgspec.to_builtins(worker)
    view["class"] = view.pop("request_class")
    del view["api_key"]
    return {**view, "has_api_key": worker.api_key is not None}


def hosted_view(provider: HostedProvider) -> View:
    """A hosted provider, prices in USD per million tokens; of its API key only whether there is
    one."""
    view: View = msgspec.to_builtins(provider)
    del view["api_key"]
    view["models"] = {
        ours: {"name": theirs.name, "price": _price_view(theirs.price)}
        for ours, theirs in provider.models.items()
    }
    view["extensions"] = list(provider.extensions)
    return {**view, "has_api_key": provider.api_key is not None}


def _price_view(price: HostedPrice | None) -> View | None:
    if price is None:
        return None
    cached = price.cached_input
    return {
        "input": show_price(price.input),
        "cached_input": None if cached is None else show_price(cached),
        "output": show_price(price.output),
    }


def price_view(price: Price) -> View:
    """A price, in its currency per million tokens, `request` per request. What is withdrawn has
    none."""
    return {
        "id": price.id,
        "model": price.model,
        "provider": price.provider,
        "currency": price.currency,
        "tenant_id": price.tenant_id,
        "plan": price.plan,
        "class": price.request_class,
        "input": None if price.withdrawn else show_price(price.input_pico),
        "cached_input": _shown_pico(price.cached_input_pico),
        "output": None if price.withdrawn else show_price(price.output_pico),
        "reasoning": _shown_pico(price.reasoning_pico),
        "request": None if price.withdrawn else show_amount(price.request_pico, price.currency),
        "withdrawn": price.withdrawn,
        "effective_from": shown(price.effective_from_ms),
    }


def plan_view(member: Membership) -> View:
    """The plan of a tenant from an instant on."""
    return {
        "tenant_id": member.tenant_id,
        "plan": member.plan,
        "effective_from": shown(member.effective_from_ms),
    }


def _shown_pico(pico: int | None) -> str | None:
    return None if pico is None else show_price(pico)


def user_view(user: User) -> View:
    """A user."""
    return {
        "id": user.id,
        "email": user.email,
        "role": user.role.value,
        "tenant_id": user.tenant_id,
        "disabled": user.disabled,
        "created_at": shown(user.created_at_ms),
        "last_login_at": shown(user.last_login_at_ms),
        "locked_until": shown(user.locked_until_ms),
    }


def token_view(token: UserToken) -> View:
    """A user's token."""
    return {
        "name": token.name,
        "scopes": None if token.scopes is None else list(token.scopes),
        "created_at": shown(token.created_at_ms),
        "expires_at": shown(token.expires_at_ms),
        "last_used_at": shown(token.last_used_at_ms),
    }


def session_view(session: OpenSession) -> View:
    """A user's session."""
    return {
        "id": session.id,
        "created_at": shown(session.created_at_ms),
        "seen_at": shown(session.seen_at_ms),
        "expires_at": shown(session.expires_at_ms),
        "address": session.address,
    }


MONEY_KINDS = frozenset({"price", "invoice", "credit_note", "seller"})
"""Kinds of subjects that say of money before and after."""
MONEY_ACTIONS = frozenset({"tenant.plan"})
"""Actions that do, on subjects that otherwise do not: a plan is whose prices a tenant pays."""


def says_of_money(action: str, subject_kind: str) -> bool:
    """Whether an entry's `before` and `after` are for those only who may read money."""
    return subject_kind in MONEY_KINDS or action in MONEY_ACTIONS


def audit_view(entry: AuditEntry, *, money: bool = True) -> View:
    """An entry of the audit log; without `money` what it says of that is withheld."""
    view: View = msgspec.to_builtins(entry)
    del view["at_ms"]
    withheld = not money and says_of_money(entry.action, entry.subject_kind)
    if withheld:
        view |= {"before": None, "after": None}
    return {**view, "at": shown(entry.at_ms), "withheld": withheld}


def page_view(page: Page[Any], items: list[View]) -> View:
    """A page: its items, and the cursor of the next one or null."""
    return {"items": items, "next_cursor": page.next_cursor}

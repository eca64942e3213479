"""What the audit log shows of a subject: everything that can be changed, no secret, no digest."""

import msgspec
from msgspec.structs import replace

from billing.domain.price_book import Membership, Price
from gateway.administration.views import hosted_view, plan_view, price_view, tenant_limits
from gateway.domain.account import User
from gateway.domain.hosted import HostedProvider
from gateway.domain.tenant import ApiKey, Limits, Model, Tenant, Worker

Image = dict[str, object]


def tenant_image(tenant: Tenant) -> Image:
    """A tenant but for its version, which only says that something changed."""
    return _without(replace(tenant, limits=tenant_limits(tenant.limits)), "limits_version")


def key_image(key: ApiKey) -> Image:
    """A key but for all that comes from its secret."""
    return _without(key, "digest", "secret_hint", "limits_version")


def limits_image(limits: Limits) -> Image:
    """Limits, whole."""
    return _without(limits)


def model_image(model: Model) -> Image:
    """A model, whole."""
    return _without(model)


def worker_image(worker: Worker) -> Image:
    """A worker; of its API key only whether there is one."""
    return {**_without(worker, "api_key"), "has_api_key": worker.api_key is not None}


def hosted_image(provider: HostedProvider) -> Image:
    """A hosted provider as the API shows it; of its API key only whether there is one."""
    return hosted_view(provider)


def key_change(
    before: Worker | HostedProvider | None, after: Worker | HostedProvider | None
) -> Image:
    """What an image adds where the API key is another than before: that it is, and no more."""
    if before is None or after is None or before.api_key == after.api_key:
        return {}
    return {"api_key_changed": True}


def price_image(price: Price) -> Image:
    """A price as the API shows it."""
    return price_view(price)


def plan_image(member: Membership) -> Image:
    """A tenant's plan as the API shows it."""
    return plan_view(member)


def user_image(user: User) -> Image:
    """A user but for when they logged in or were locked, which is no change of an administrator's;
    the password's hash is no part of it."""
    return _without(user, "locked_until_ms", "last_login_at_ms")


def _without(subject: msgspec.Struct, *hidden: str) -> Image:
    fields = msgspec.to_builtins(
        {name: getattr(subject, name) for name in subject.__struct_fields__ if name not in hidden}
    )
    assert isinstance(fields, dict)  # noqa: S101 - a mapping stays one
    return fields

"""How far a tenant's own admin may change a key's limits: up to the tenant's own, of each kind.

A tenant's limits hold beside its keys' whatever those say, so a key's limit above them would bind
nothing, and whoever wrote it would believe in something that is not so. Of one model the ceiling is
the tighter of the tenant's limit for that model and its limit for all.

None is no limit of the key's own, which leaves it to the tenant's, and is within them. Of money it
is not: a key's budget is what its holder was given of the tenant's, so where the tenant has a
budget it may be raised up to that, and not be taken away. What is as it was is never refused: it
may be the work of whoever runs the gateway, who may go beyond.
"""

from collections.abc import Iterator

from billing.domain.money import parse_amount
from gateway.domain.tenant import (
    CacheIsolation,
    DataPolicy,
    Limits,
    ModelLimits,
    Tenant,
    waiting_of,
)
from gateway.errors import Unprocessable

_OF_MODELS = ("max_sequences", "tpm", "rpm", "max_prompt_tokens", "max_output_tokens")
_MONEY = "monthly_budget"


def check_within(wanted: Limits, before: Limits, tenant: Tenant) -> None:
    """Raises Unprocessable, naming the field and the ceiling, where a key's limits go beyond those
    of its tenant and did not before."""
    _check_policies(wanted, before, tenant.limits)
    counts = dict(_counts(tenant.limits))
    for field, ceiling in counts.items():
        _check_count(field, getattr(wanted, field), getattr(before, field), ceiling)
    _check_money(_MONEY, wanted, before, [tenant.limits.monthly_budget], tenant.currency)
    for model_id in sorted({*wanted.models, *before.models}):
        new, old, own = (
            limits.models.get(model_id, ModelLimits()) for limits in (wanted, before, tenant.limits)
        )
        for field in _OF_MODELS:
            ceiling = _tightest(counts[field], getattr(own, field))
            shown = f"models.{model_id}.{field}"
            _check_count(shown, getattr(new, field), getattr(old, field), ceiling)
        budgets = [own.monthly_budget, tenant.limits.monthly_budget]
        _check_money(f"models.{model_id}.{_MONEY}", new, old, budgets, tenant.currency)


def _counts(limits: Limits) -> Iterator[tuple[str, int | None]]:
    for field in _OF_MODELS:
        yield field, getattr(limits, field)
    yield from waiting_of(limits)._asdict().items()
    yield "weight", limits.weight


def _check_count(field: str, wanted: int | None, before: int | None, ceiling: int | None) -> None:
    if wanted is None or ceiling is None or wanted <= ceiling or wanted == before:
        return
    raise Unprocessable(f"{field}: must be at most {ceiling}, the tenant's own", param=field)


def _check_money(
    field: str,
    wanted: Limits | ModelLimits,
    before: Limits | ModelLimits,
    ceilings: list[str | None],
    currency: str,
) -> None:
    new, old = wanted.monthly_budget, before.monthly_budget
    amounts = [(parse_amount(each, currency), each) for each in ceilings if each is not None]
    if not amounts or new == old:
        return
    ceiling, shown = min(amounts)
    if new is None or parse_amount(new, currency) > ceiling:
        what = f"must be at most {shown} {currency}, the tenant's own"
        also = "" if new is not None else "; without one the key would have no budget at all"
        raise Unprocessable(f"{field}: {what}{also}", param=field)


def _check_policies(wanted: Limits, before: Limits, tenant: Limits) -> None:
    hosted, shared = DataPolicy.HOSTED_ALLOWED, CacheIsolation.SHARED
    for field, loose in (("data_policy", hosted), ("cache_isolation", shared)):
        new = getattr(wanted, field)
        if new == loose and getattr(tenant, field) != loose and new != getattr(before, field):
            raise Unprocessable(
                f"{field}: cannot be {loose.value} where the tenant's own is not", param=field
            )


def _tightest(*ceilings: int | None) -> int | None:
    known = [each for each in ceilings if each is not None]
    return min(known, default=None)

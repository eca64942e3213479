"""Which limits may be stored: known fields, known models, and nothing that could not be enforced.

Limits that contradict each other stay: of several the tightest holds, and a key's budget needs no
tenant's. Refused are:

- a budget that is no amount of the tenant's currency, or that reaches a model without a price in
  it: what a request may cost would not be known, and nothing could be refused for it. It reaches
  every model for a tenant, those that the key may use for a key, the one for a model; there must
  be one;
- of a tenant, no bound on how many of its requests wait or on how long they do; a key may leave
  both to its tenant;
- limits of a model that does not exist, or that the key may not use: no request ever meets them,
  and whoever wrote them believes in something that is not so.

A model that gets no price, or is registered later without one, is refused at each request while a
budget is in force.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from billing.domain.money import InvalidAmount, parse_amount
from billing.domain.price_book import PriceBook
from gateway.domain.field_errors import unprocessable_field
from gateway.domain.tenant import Limits, ModelLimits, RequestClass, TenantLimits
from gateway.errors import Unprocessable

SELF = "self"
"""The provider that the fleet's own prices are for."""


@dataclass(frozen=True)
class Reach:
    """What limits are checked against: the models that requests can be for, and their prices."""

    known_models: Collection[str]
    allowed_models: Collection[str] | None = None
    """Those that the key may use; None is all, and a tenant's."""
    of_key: bool = False
    """Whether they are a key's, and may leave to its tenant what a tenant must say."""
    tenant_id: str | None = None
    currency: str = "USD"
    prices: PriceBook = field(default_factory=PriceBook)
    now_ms: int = 0
    """When a price must hold, in Unix milliseconds."""

    @property
    def models(self) -> list[str]:
        """Models that a request can be for."""
        allowed = self.allowed_models
        return sorted(m for m in self.known_models if allowed is None or m in allowed)


def limits_from(fields: object, reach: Reach) -> Limits:
    """The limits that `fields` describe: decoded JSON, where absent fields take their defaults, or
    Limits built in code, which nothing has checked yet, and where None is absent.

    Raises Unprocessable naming the field that is unknown, of a wrong type, out of range, a model
    that cannot be reached, or a limit that could not be enforced.
    """
    if isinstance(fields, Limits):
        fields = given_fields(fields)
    if isinstance(fields, Mapping):
        _check_models(fields.get("models"))
    try:
        limits = msgspec.convert(fields, Limits)
        if not reach.of_key:
            msgspec.convert(fields, TenantLimits)
    except msgspec.ValidationError as error:
        raise unprocessable_field(error) from error
    _check_reached(limits, reach)
    for where, budget, models in _budgets(limits, reach):
        _check_budget(where, budget, models, reach)
    return limits


def changed_limits(
    limits: Limits,
    changes: Mapping[str, object],
    reach: Reach,
    *,
    model_id: str | None = None,
) -> Limits:
    """`limits` with the named fields replaced, of one model where `model_id` is given, checked as
    a whole. A model that is left with no limit of its own is named no more."""
    if model_id is None:
        return limits_from({**given_fields(limits), **changes}, reach)
    narrowed = msgspec.to_builtins(limits.models.get(model_id, ModelLimits()))
    models = {**msgspec.to_builtins(limits.models), model_id: {**narrowed, **changes}}
    changed = changed_limits(limits, {"models": models}, reach)
    kept = {name: own for name, own in changed.models.items() if own != ModelLimits()}
    return msgspec.structs.replace(changed, models=kept)


def given_fields(limits: Limits) -> dict[str, object]:
    """The fields as JSON has them, without those that are None: absent means the same, to releases
    too in which some could not be null. Limits are stored so."""
    fields: dict[str, object] = msgspec.to_builtins(limits)
    return {name: value for name, value in fields.items() if value is not None}


def has_budget(limits: Limits) -> bool:
    """Whether the limits have a budget, for all models or for one."""
    budgets = (limits.monthly_budget, *(own.monthly_budget for own in limits.models.values()))
    return any(budget is not None for budget in budgets)


def _check_models(models: object) -> None:
    """Check each model's limits by itself: msgspec's own path does not say which model it is."""
    if not isinstance(models, Mapping):
        return
    for model_id, narrowed in models.items():
        try:
            msgspec.convert(narrowed, ModelLimits)
        except msgspec.ValidationError as error:
            raise unprocessable_field(error, prefix=f"models.{model_id}") from error


def _check_reached(limits: Limits, reach: Reach) -> None:
    usable = frozenset(reach.models)
    for model_id in limits.models:
        if model_id not in usable:
            known = model_id in reach.known_models
            why = "the key may not use this model" if known else "there is no such model"
            raise Unprocessable(f"models.{model_id}: {why}", param=f"models.{model_id}")


def _budgets(limits: Limits, reach: Reach) -> Iterator[tuple[str, str, list[str]]]:
    """Each budget: its field, its amount, the models it is for."""
    if limits.monthly_budget is not None:
        yield "monthly_budget", limits.monthly_budget, reach.models
    for model_id, own in limits.models.items():
        if own.monthly_budget is not None:
            yield f"models.{model_id}.monthly_budget", own.monthly_budget, [model_id]


def _check_budget(where: str, budget: str, models: Collection[str], reach: Reach) -> None:
    try:
        parse_amount(budget, reach.currency)
    except InvalidAmount as error:
        raise Unprocessable(f"{where}: {error}", param=where) from error
    if not models:
        raise Unprocessable(f"{where}: there is no model that it could be for", param=where)
    for model_id in models:
        if not all(_is_priced(model_id, request_class, reach) for request_class in RequestClass):
            raise Unprocessable(
                f"{where}: the model {model_id} has no price in {reach.currency} now, so what its "
                "requests cost could not be held within a budget",
                param=where,
            )


def _is_priced(model_id: str, request_class: RequestClass, reach: Reach) -> bool:
    price = reach.prices.price_at(
        model_id,
        SELF,
        reach.currency,
        reach.now_ms,
        tenant_id=reach.tenant_id,
        request_class=request_class.value,
    )
    return price is not None

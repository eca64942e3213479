"""Which limits may be stored: known fields, known models, and nothing that is not enforced."""

from collections.abc import Collection, Mapping

import msgspec

from gateway.domain.field_errors import unprocessable_field
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import Unprocessable


def limits_from(fields: object, *, known_models: Collection[str]) -> Limits:
    """The limits that `fields` describe: decoded JSON, where absent fields take their defaults, or
    Limits built in code, which nothing has checked yet.

    Raises Unprocessable naming the field that is unknown, of a wrong type, out of range, a model
    that is not in `known_models`, or a limit that could not be enforced.
    """
    if isinstance(fields, Limits):
        fields = msgspec.to_builtins(fields)
    if isinstance(fields, Mapping):
        _check_models(fields.get("models"))
    try:
        limits = msgspec.convert(fields, Limits)
    except msgspec.ValidationError as error:
        raise unprocessable_field(error) from error
    return _enforceable(limits, known_models)


def changed_limits(
    limits: Limits,
    changes: Mapping[str, object],
    *,
    known_models: Collection[str],
    model_id: str | None = None,
) -> Limits:
    """`limits` with the named fields replaced, of one model where `model_id` is given, checked as
    a whole. A model that is left with no limit of its own is named no more."""
    if model_id is None:
        return limits_from({**msgspec.to_builtins(limits), **changes}, known_models=known_models)
    narrowed = msgspec.to_builtins(limits.models.get(model_id, ModelLimits()))
    models = {**msgspec.to_builtins(limits.models), model_id: {**narrowed, **changes}}
    changed = changed_limits(limits, {"models": models}, known_models=known_models)
    kept = {name: own for name, own in changed.models.items() if own != ModelLimits()}
    return msgspec.structs.replace(changed, models=kept)


def _check_models(models: object) -> None:
    """Check each model's limits by itself: msgspec's own path does not say which model it is."""
    if not isinstance(models, Mapping):
        return
    for model_id, narrowed in models.items():
        try:
            msgspec.convert(narrowed, ModelLimits)
        except msgspec.ValidationError as error:
            raise unprocessable_field(error, prefix=f"models.{model_id}") from error


def _enforceable(limits: Limits, known_models: Collection[str]) -> Limits:
    if limits.monthly_budget is not None:
        raise Unprocessable(
            "monthly_budget: a budget cannot be enforced yet, so it must be null",
            param="monthly_budget",
        )
    for model_id in limits.models:
        if model_id not in known_models:
            raise Unprocessable(
                f"models.{model_id}: there is no such model", param=f"models.{model_id}"
            )
    return limits

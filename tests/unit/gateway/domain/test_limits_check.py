"""Limits are checked before they are stored."""

import pytest

from gateway.domain.limits_check import changed_limits, limits_from
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import Unprocessable

MODELS = frozenset({"m", "n"})


def test_absent_fields_take_their_defaults() -> None:
    """An empty body is no limit at all but for the queue's."""
    assert limits_from({}, known_models=MODELS) == Limits()


def test_what_is_given_is_taken() -> None:
    """Every field, zero and null included."""
    fields = {
        "max_sequences": 0,
        "tpm": None,
        "rpm": 5,
        "max_queued": 0,
        "max_wait_ms": 0,
        "weight": 7,
        "models": {"m": {"tpm": 0}},
    }
    limits = limits_from(fields, known_models=MODELS)
    assert (limits.max_sequences, limits.tpm, limits.rpm, limits.weight) == (0, None, 5, 7)
    assert limits.models == {"m": ModelLimits(tpm=0)}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tpm": -1}, "tpm"),
        ({"tpm": 2**53 + 1}, "tpm"),
        ({"tpm": 1.0}, "tpm"),
        ({"tpm": "1"}, "tpm"),
        ({"tpm": False}, "tpm"),
        ({"max_wait_ms": None}, "max_wait_ms"),
        ({"weight": 0}, "weight"),
        ({"weight": 1001}, "weight"),
        ({"speed": 1}, "speed"),
        ({"monthly_budget": "0.00"}, "monthly_budget"),
        ({"cache_isolation": "none"}, "cache_isolation"),
        ({"models": {"m": {"tpm": -1}}}, "models.m.tpm"),
        ({"models": {"m": {"max_queued": 1}}}, "models.m.max_queued"),
        ({"models": {"m": 5}}, "models.m"),
        ({"models": {"gpt-5": {}}}, "models.gpt-5"),
        ({"models": "m"}, "models"),
    ],
)
def test_what_could_not_be_enforced_is_refused(fields: dict[str, object], param: str) -> None:
    """The refusal names the field, also within a model's limits."""
    with pytest.raises(Unprocessable) as refused:
        limits_from(fields, known_models=MODELS)
    assert refused.value.param == param
    assert refused.value.message.startswith(param)


@pytest.mark.parametrize("fields", [[], None, 5, "limits"])
def test_anything_but_an_object_is_refused(fields: object) -> None:
    """There is no field to name then."""
    with pytest.raises(Unprocessable) as refused:
        limits_from(fields, known_models=MODELS)
    assert refused.value.param is None


def test_limits_built_in_code_are_checked_too() -> None:
    """A struct's constructor checks nothing."""
    with pytest.raises(Unprocessable):
        limits_from(Limits(tpm=-1), known_models=MODELS)
    with pytest.raises(Unprocessable):
        limits_from(Limits(models={"x": ModelLimits()}), known_models=MODELS)


def test_a_change_keeps_the_rest() -> None:
    """Of the tenant's own limits, and of another model's."""
    limits = Limits(tpm=5, rpm=6, models={"n": ModelLimits(tpm=1)})
    changed = changed_limits(limits, {"tpm": None}, known_models=MODELS)
    assert changed == Limits(rpm=6, models={"n": ModelLimits(tpm=1)})
    narrowed = changed_limits(limits, {"rpm": 2}, known_models=MODELS, model_id="m")
    assert narrowed.models == {"n": ModelLimits(tpm=1), "m": ModelLimits(rpm=2)}
    assert (narrowed.tpm, narrowed.rpm) == (5, 6)


def test_a_model_without_limits_is_named_no_more() -> None:
    """Taking the last one away takes the model's entry away."""
    limits = Limits(models={"m": ModelLimits(tpm=1)})
    changed = changed_limits(limits, {"tpm": None}, known_models=MODELS, model_id="m")
    assert changed.models == {}

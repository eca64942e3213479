"""Limits as a form: what is stored comes back as it was, and nothing is guessed."""

import pytest

from gateway.administration.views import tenant_limits
from gateway.console.forms import Form
from gateway.console.limit_form import FIELDS, MODEL, limits_form, only_models, read_limits
from gateway.domain.limits_check import Reach, limits_from
from gateway.domain.tenant import DataPolicy, Limits, ModelLimits, TenantLimits
from gateway.errors import Unprocessable

FULL = TenantLimits(
    max_sequences=4,
    tpm=0,
    rpm=60,
    max_queued=7,
    max_wait_ms=1_500,
    weight=3,
    max_prompt_tokens=1_000,
    max_output_tokens=200,
    data_policy=DataPolicy.HOSTED_ALLOWED,
    models={"m": ModelLimits(tpm=5), "org/n:1.5": ModelLimits(max_sequences=0)},
)
REACH = Reach(known_models=("m", "org/n:1.5"))


def sent(form: Form) -> Form:
    """The form as a browser sends it: what is not said is not there."""
    return Form({name: values for name, values in form.values.items() if values != [""]})


@pytest.mark.parametrize("limits", [FULL, TenantLimits()])
def test_the_limits_of_a_tenant_come_back_as_they_were(limits: TenantLimits) -> None:
    """0 too, which is none at all, and what a model narrows."""
    form = sent(limits_form(tenant_limits(limits), ("m",), version=3))
    fields = read_limits(form, of_key=False)
    assert form.errors == {}
    assert tenant_limits(limits_from(fields, REACH)) == tenant_limits(limits)


@pytest.mark.parametrize("limits", [Limits(), Limits(tpm=7, weight=2, max_queued=0)])
def test_the_limits_of_a_key_come_back_as_they_were(limits: Limits) -> None:
    """What it leaves to its tenant is left to it."""
    form = sent(limits_form(limits, (), version=3))
    fields = read_limits(form, of_key=True)
    assert form.errors == {}
    assert limits_from(fields, Reach(known_models=(), of_key=True)) == limits


@pytest.mark.parametrize("name", [field.name for field in FIELDS if field.kind != "choice"])
def test_an_empty_field_is_not_no_limit(name: str) -> None:
    """Without its box ticked it says nothing, and nothing is taken from it."""
    form = limits_form(FULL, (), version=1)
    form.values[name] = [""]
    form.values.pop(f"none.{name}", None)
    read_limits(form, of_key=False)
    assert set(form.errors) == {name}


def test_a_number_and_no_limit_at_once_are_refused() -> None:
    """Whoever typed a number did not mean that there is none."""
    form = limits_form(TenantLimits(), (), version=1)
    form.values["tpm"] = ["500"]
    read_limits(form, of_key=False)
    assert form.errors == {"tpm": "a number, or “No limit”: not both"}


@pytest.mark.parametrize(
    ("param", "field"),
    [("tpm", "tpm"), ("models.m.tpm", "models.m.tpm"), ("models.gone.tpm", ""), (None, "")],
)
def test_a_refusal_stands_at_the_field_that_it_names(param: str | None, field: str) -> None:
    """Without saying the field's name again; what no field is for is said of the whole."""
    form = limits_form(FULL, ("m",), version=1)
    message = "too much" if param is None else f"{param}: too much"
    form.refused(Unprocessable(message, param=param))
    assert form.errors == {field: "too much" if field else message}


def test_of_each_model_that_is_there_a_form_has_fields_once() -> None:
    """However often it was sent; fields of nothing are none of the form's."""
    shown = limits_form(Limits(), ("m", "n"), version=1)
    form = Form({**shown.values, MODEL: ["m", "n", "m"] * 3})
    form.values["models.n.tpm"] = ["5"] * 9
    form.values["models.gone.tpm"] = form.values["other"] = ["5"]
    kept = only_models(form, {"m", "n"})
    assert kept.ok
    assert kept.values == {**shown.values, "models.n.tpm": ["5"]}


def test_a_model_that_is_gone_is_said_and_not_passed_over() -> None:
    """Nothing is saved until that was seen."""
    form = only_models(limits_form(Limits(), ("m", "gone"), version=1), {"m"})
    assert form.all(MODEL) == ["m"]
    assert "there no more" in form.errors[""]

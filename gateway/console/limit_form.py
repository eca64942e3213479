"""Limits as a form: each with its unit and what it does, "no limit" a box of its own. Pure.

A number is never taken for "no limit", nor an empty field: of a field and its box exactly one says
something, or nothing is saved.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.console.forms import Form
from gateway.domain.tenant import CacheIsolation, DataPolicy, Limits, ModelLimits

Kind = Literal["whole", "money", "choice"]
NO_LIMIT = "none."
"""Before the name of a field: the box that says that there is no limit."""
MODEL = "model"
"""The hidden fields that name the models which the form has fields of."""
VERSION = "version"


@dataclass(frozen=True)
class LimitField:
    """One limit. `none` is what its box says, and empty where there always is a limit."""

    name: str
    label: str
    unit: str
    hint: str
    kind: Kind = "whole"
    none: str = "No limit"
    key_none: str = "None of its own"
    choices: tuple[tuple[str, str], ...] = ()
    group: str = ""


_POLICIES = (
    (DataPolicy.SELF_HOSTED_ONLY.value, "only to our own workers"),
    (DataPolicy.HOSTED_ALLOWED.value, "also to hosted providers, where no worker can serve them"),
)
_ISOLATION = (
    (CacheIsolation.TENANT.value, "of this tenant alone"),
    (CacheIsolation.SHARED.value, "shared with other tenants that share"),
)
_RATE, _WAITING, _SIZE, _REST = (
    "At once and per minute",
    "Waiting in the queue",
    "Size of a request",
    "Money and data",
)

FIELDS = (
    LimitField(
        "max_sequences",
        "Sequences at once",
        "sequences",
        "How many choices are generated at the same time; a request with n=3 takes three.",
        group=_RATE,
    ),
    LimitField(
        "tpm",
        "Tokens per minute",
        "tokens / min",
        "Prompt and output tokens charged in any 60 seconds. What a request may use at most is "
        "held back for it while it runs.",
        group=_RATE,
    ),
    LimitField(
        "rpm",
        "Requests per minute",
        "requests / min",
        "Requests admitted in any 60 seconds.",
        group=_RATE,
    ),
    LimitField(
        "max_queued",
        "Requests that wait",
        "requests",
        "So many may wait for a place at a time; more are refused at once.",
        none="",
        key_none="As the tenant",
        group=_WAITING,
    ),
    LimitField(
        "max_wait_ms",
        "Longest wait",
        "ms",
        "Who has waited so long without a place is refused.",
        none="",
        key_none="As the tenant",
        group=_WAITING,
    ),
    LimitField(
        "weight",
        "Weight",
        "× a share",
        "1 to 1000. Where tenants wait for the same workers, one of weight 2 gets twice the tokens "
        "of one of weight 1.",
        none="",
        key_none="",
        group=_WAITING,
    ),
    LimitField(
        "max_prompt_tokens",
        "Longest prompt",
        "tokens",
        "All prompts of a request together.",
        group=_SIZE,
    ),
    LimitField(
        "max_output_tokens",
        "Longest output",
        "tokens",
        "Each choice of a request.",
        group=_SIZE,
    ),
    LimitField(
        "monthly_budget",
        "Monthly budget",
        "",
        "What a month of the tenant's time zone may cost. Who has used it up is refused until the "
        "next month.",
        kind="money",
        group=_REST,
    ),
    LimitField(
        "data_policy",
        "Prompts may go",
        "",
        "Where requests are sent.",
        kind="choice",
        none="",
        key_none="as the tenant's",
        choices=_POLICIES,
        group=_REST,
    ),
    LimitField(
        "cache_isolation",
        "Prefix cache",
        "",
        "Whether a prompt's beginning may be found in the cache because another tenant sent it.",
        kind="choice",
        none="",
        key_none="",
        choices=_ISOLATION,
        group=_REST,
    ),
)
FIELD = {field.name: field for field in FIELDS}
MODEL_FIELDS = tuple(FIELD[name] for name in ModelLimits.__struct_fields__)
GROUPS = tuple(
    (group, tuple(field for field in FIELDS if field.group == group))
    for group in dict.fromkeys(field.group for field in FIELDS)
)


def model_field(model_id: str, name: str) -> str:
    """The name of the field of a model's limit; it is also how a refusal names it."""
    return f"models.{model_id}.{name}"


def limits_form(limits: Limits, models: Iterable[str], *, version: int) -> Form:
    """A form that shows `limits`, with fields of each of `models` and of each that is narrowed."""
    values: dict[str, list[str]] = {VERSION: [str(version)]}
    for each in FIELDS:
        value = getattr(limits, each.name)
        values[each.name] = ["" if value is None else str(value)]
        if value is None:
            values[NO_LIMIT + each.name] = ["1"]
    named = sorted({*models, *limits.models})
    values[MODEL] = named
    for model_id in named:
        own = limits.models.get(model_id, ModelLimits())
        for each in MODEL_FIELDS:
            value = getattr(own, each.name)
            shown = "" if value is None else str(value)
            values[model_field(model_id, each.name)] = [shown]
    return Form(values)


def read_limits(form: Form, *, of_key: bool) -> dict[str, object]:
    """The limits that the form says, as `limits_from` takes them. What it does not say clearly is
    noted at its field, and the form is not `ok`."""
    found: dict[str, object] = {}
    for each in FIELDS:
        value = _read(form, each, each.key_none if of_key else each.none)
        if value is not None:
            found[each.name] = value
    models: dict[str, Mapping[str, object]] = {}
    for model_id in dict.fromkeys(form.all(MODEL)):
        own = {
            each.name: _value(form, each, model_field(model_id, each.name)) for each in MODEL_FIELDS
        }
        given = {name: value for name, value in own.items() if value is not None}
        if given:
            models[model_id] = given
    return {**found, "models": models} if models else found


def only_models(form: Form, there: Collection[str]) -> Form:
    """This form with its own fields alone, of each model once and of those that are `there`. Where
    another is named, that is noted, and the form is not `ok`."""
    asked = dict.fromkeys(form.all(MODEL))
    models = [model_id for model_id in asked if model_id in there]
    if len(models) < len(asked):
        form.errors[""] = "A model of this form is there no more: its limits are left out."
    names = {VERSION, *FIELD, *(NO_LIMIT + name for name in FIELD)}
    names |= {model_field(model_id, each.name) for model_id in models for each in MODEL_FIELDS}
    kept = {name: values[:1] for name, values in form.values.items() if name in names}
    return Form({**kept, MODEL: models}, form.errors)


def _read(form: Form, field: LimitField, none: str) -> object:
    value = _value(form, field, field.name)
    if field.name in form.errors:
        return None
    if field.kind == "choice":
        return value
    without = bool(none) and form.flag(NO_LIMIT + field.name)
    if without and value is not None:
        form.errors[field.name] = f"a number, or “{none}”: not both"
    elif not without and value is None:
        what = f"say a number, or tick “{none}”" if none else "must not be empty"
        form.errors[field.name] = what
    return None if without else value


def _value(form: Form, field: LimitField, name: str) -> object:
    return form.whole(name) if field.kind == "whole" else form.optional(name)

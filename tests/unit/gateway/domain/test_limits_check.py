"""Limits are checked before they are stored."""

from dataclasses import replace

import msgspec
import pytest

from billing.domain.price_book import Price, PriceBook
from gateway.domain.limits_check import (
    Reach,
    changed_limits,
    given_fields,
    has_budget,
    limits_from,
)
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import Unprocessable

MODELS = frozenset({"m", "n"})
REACH = Reach(MODELS)


def a_price(
    model: str, currency: str = "USD", *, from_ms: int = 0, provider: str = "self"
) -> Price:
    return Price(
        id=hash((model, provider)),
        model=model,
        provider=provider,
        currency=currency,
        input_pico=1,
        output_pico=2,
        effective_from_ms=from_ms,
    )


def priced(*prices: Price, **changes: object) -> Reach:
    """Two models, with these prices."""
    return replace(REACH, prices=PriceBook(prices), **changes)  # type: ignore[arg-type]


BOTH = priced(a_price("m"), a_price("n"))


def test_absent_fields_take_their_defaults() -> None:
    """An empty body is no limit at all but for the queue's."""
    assert limits_from({}, REACH) == Limits()


def test_what_is_given_is_taken() -> None:
    """Every field, zero and null included."""
    fields = {
        "max_sequences": 0,
        "tpm": None,
        "rpm": 5,
        "max_queued": 0,
        "max_wait_ms": 0,
        "weight": 7,
        "max_prompt_tokens": 0,
        "models": {"m": {"tpm": 0, "max_prompt_tokens": 9, "max_output_tokens": None}},
    }
    limits = limits_from(fields, REACH)
    assert (limits.max_sequences, limits.tpm, limits.rpm, limits.weight) == (0, None, 5, 7)
    assert limits.max_prompt_tokens == 0
    assert limits.models == {"m": ModelLimits(tpm=0, max_prompt_tokens=9)}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tpm": -1}, "tpm"),
        ({"tpm": 2**53 + 1}, "tpm"),
        ({"tpm": 1.0}, "tpm"),
        ({"tpm": "1"}, "tpm"),
        ({"tpm": False}, "tpm"),
        ({"max_wait_ms": None}, "max_wait_ms"),
        ({"max_queued": None}, "max_queued"),
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
        limits_from(fields, REACH)
    assert refused.value.param == param
    assert refused.value.message.startswith(param)


@pytest.mark.parametrize("fields", [[], None, 5, "limits"])
def test_anything_but_an_object_is_refused(fields: object) -> None:
    """There is no field to name then."""
    with pytest.raises(Unprocessable) as refused:
        limits_from(fields, REACH)
    assert refused.value.param is None


def test_limits_built_in_code_are_checked_too() -> None:
    """A struct's constructor checks nothing."""
    with pytest.raises(Unprocessable):
        limits_from(Limits(tpm=-1), REACH)
    with pytest.raises(Unprocessable):
        limits_from(Limits(models={"x": ModelLimits()}), REACH)


def test_a_key_may_leave_waiting_to_its_tenant() -> None:
    """Null is what it has where it says nothing; a tenant's cannot be taken away."""
    of_key = replace(REACH, of_key=True)
    assert limits_from({"max_queued": None, "max_wait_ms": None}, of_key) == Limits()
    own = limits_from({"max_queued": 0, "max_wait_ms": 5}, of_key)
    assert (own.max_queued, own.max_wait_ms) == (0, 5)
    assert changed_limits(own, {"max_queued": None}, of_key) == Limits(max_wait_ms=5)
    with pytest.raises(Unprocessable, match=r"^max_queued") as refused:
        changed_limits(own, {"max_queued": None}, REACH)
    assert refused.value.param == "max_queued"
    assert changed_limits(Limits(), {"tpm": 5}, REACH) == Limits(tpm=5)
    with pytest.raises(Unprocessable, match=r"^max_wait_ms"):
        limits_from({"max_wait_ms": -1}, of_key)


def test_stored_limits_have_no_null() -> None:
    """A release that takes none of some field reads its default there, which is the same."""
    limits = Limits(tpm=0, models={"m": ModelLimits(rpm=1)})
    given = given_fields(limits)
    assert None not in given.values()
    assert given.keys() == {"tpm", "weight", "cache_isolation", "models"}
    assert msgspec.convert(given, Limits) == limits


def test_a_change_keeps_the_rest() -> None:
    """Of the tenant's own limits, and of another model's."""
    limits = Limits(tpm=5, rpm=6, models={"n": ModelLimits(tpm=1)})
    changed = changed_limits(limits, {"tpm": None}, REACH)
    assert changed == Limits(rpm=6, models={"n": ModelLimits(tpm=1)})
    narrowed = changed_limits(limits, {"rpm": 2}, REACH, model_id="m")
    assert narrowed.models == {"n": ModelLimits(tpm=1), "m": ModelLimits(rpm=2)}
    assert (narrowed.tpm, narrowed.rpm) == (5, 6)


def test_a_model_without_limits_is_named_no_more() -> None:
    """Taking the last one away takes the model's entry away."""
    limits = Limits(models={"m": ModelLimits(tpm=1)})
    changed = changed_limits(limits, {"tpm": None}, REACH, model_id="m")
    assert changed.models == {}


@pytest.mark.parametrize("amount", ["500.00", "500", "0", "0.01", "999999999999.99"])
def test_r14_a_budget_is_kept_as_it_was_written(amount: str) -> None:
    """For all models and for one; B04: null takes it away."""
    limits = limits_from(
        {"monthly_budget": amount, "models": {"m": {"monthly_budget": amount}}}, BOTH
    )
    assert limits == Limits(monthly_budget=amount, models={"m": ModelLimits(monthly_budget=amount)})
    assert has_budget(limits)
    without = changed_limits(limits, {"monthly_budget": None}, BOTH)
    assert has_budget(without)
    assert not has_budget(changed_limits(without, {"monthly_budget": None}, BOTH, model_id="m"))


@pytest.mark.parametrize(
    "amount",
    [
        "",
        " 5",
        "-1",
        "+1",
        "1e3",
        "1,000",
        "0.001",
        "5.",
        ".5",
        "05",
        "5.00\n",
        "٥",
        "1" * 13,
        "NaN",
    ],
)
def test_b27_what_is_no_amount_is_refused(amount: str) -> None:
    """Plain digits with at most the currency's decimals; the field is named."""
    for fields, param in (
        ({"monthly_budget": amount}, "monthly_budget"),
        ({"models": {"m": {"monthly_budget": amount}}}, "models.m.monthly_budget"),
    ):
        with pytest.raises(Unprocessable) as refused:
            limits_from(fields, BOTH)
        assert refused.value.param == param
        assert refused.value.message.startswith(param)


def test_b27_a_number_is_no_text() -> None:
    """A JSON number may have become a float on its way."""
    with pytest.raises(Unprocessable) as refused:
        limits_from({"monthly_budget": 500}, BOTH)
    assert refused.value.param == "monthly_budget"


def test_b27_decimals_are_the_currencys() -> None:
    """A dinar has three, a yen none."""
    dinar = priced(a_price("m", "KWD"), a_price("n", "KWD"), currency="KWD")
    assert limits_from({"monthly_budget": "5.125"}, dinar).monthly_budget == "5.125"
    yen = priced(a_price("m", "JPY"), a_price("n", "JPY"), currency="JPY")
    with pytest.raises(Unprocessable, match="at most 0 decimals"):
        limits_from({"monthly_budget": "5.1"}, yen)


NOT_PRICED = [
    (REACH, "m"),
    (priced(a_price("m")), "n"),
    (priced(a_price("n", "EUR"), a_price("m")), "n"),
    (priced(a_price("n", from_ms=1), a_price("m")), "n"),
    (priced(a_price("n", provider="hosted:x"), a_price("m")), "n"),
]


@pytest.mark.parametrize(("reach", "model"), NOT_PRICED)
def test_b27_a_budget_without_prices_is_refused(reach: Reach, model: str) -> None:
    """No price book, none of one model, another currency's, one that begins later, another
    provider's: the model is named."""
    with pytest.raises(Unprocessable, match=f"model {model} has no price in USD") as refused:
        limits_from({"monthly_budget": "5.00"}, reach)
    assert refused.value.param == "monthly_budget"
    with pytest.raises(Unprocessable, match=f"model {model} has no price"):
        limits_from({"models": {model: {"monthly_budget": "5.00"}}}, reach)


def test_b27_only_what_a_budget_reaches_needs_a_price() -> None:
    """The models that the key may use, or the one that is narrowed."""
    reach = priced(a_price("m"))
    assert limits_from({"models": {"m": {"monthly_budget": "5"}}}, reach).models
    assert limits_from({"monthly_budget": "5"}, replace(reach, allowed_models=["m"]))


@pytest.mark.parametrize("reach", [Reach([]), replace(REACH, allowed_models=["gone"])])
def test_b27_a_budget_for_no_model_is_refused(reach: Reach) -> None:
    """A deployment without models has no prices either."""
    with pytest.raises(Unprocessable, match="no model that it could be for") as refused:
        limits_from({"monthly_budget": "5.00"}, reach)
    assert refused.value.param == "monthly_budget"


def test_a_model_that_the_key_may_not_use_has_no_limits() -> None:
    """They would never be met."""
    reach = replace(REACH, allowed_models=["m"])
    assert limits_from({"models": {"m": {"tpm": 1}}}, reach).models
    with pytest.raises(Unprocessable, match="may not use") as refused:
        limits_from({"models": {"n": {"tpm": 1}}}, reach)
    assert refused.value.param == "models.n"

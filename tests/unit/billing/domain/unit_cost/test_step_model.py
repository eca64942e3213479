"""The step model: its profiles are those that replicas are simulated with, its sums the
formulas'."""

from fractions import Fraction

import pytest
from unit_cost_examples import a_round_model, some_work

from backend.simulated.profiles import PROFILES as SIMULATED
from billing.domain.unit_cost.quantities import InvalidQuantity
from billing.domain.unit_cost.step_model import (
    DEFAULT_PROFILE,
    PROFILES,
    EngineWork,
    total_work,
    with_coefficients,
)

GPUS = 4


def test_profiles_are_the_simulators() -> None:
    """Neither package may import the other; the constants are the same."""
    assert PROFILES.keys() == SIMULATED.keys()
    for name, profile in PROFILES.items():
        step = SIMULATED[name].step
        here = (profile.a0, profile.a1, profile.a2, profile.b0, profile.b1, profile.b2)
        there = (step.a0_ms, step.a1_ms, step.a2_ms, step.b0_ms, step.b1_ms, step.b2_ms)
        assert here == tuple(Fraction(str(each)) for each in there)


def test_work_is_the_formulas() -> None:
    """2,000 in, 60 % cached, 400 out, at 30 ms a step: prefill 5.6 + 32 + 1.28, decode 400 times
    11.07/80 + 0.0463, KV 0.00003 for each of the tokens in each step."""
    work = some_work(1, uncached=800, cached=1_200, output=400, held_ms=12_000)
    units = DEFAULT_PROFILE.units(Fraction(30))
    prefill, decode, kv = (units.gpu_ms(part) / GPUS for part in units.of(work))
    assert prefill == Fraction("38.88")
    assert decode == Fraction("73.87")
    assert kv == Fraction("26.4")


def test_a_token_costs_what_the_chargeback_weights_say() -> None:
    """0.040 ms uncached; about 0.25 ms of output at a batch of 80, 0.46 at 32, 0.18 at 160, with a
    context of 2,200."""
    found = {}
    for batch in ("80", "32", "160"):
        model = with_coefficients(DEFAULT_PROFILE, {"batch": batch, "step": "1"})
        units = model.units(Fraction(1))
        ms = units.gpu_ms(units.output_token + 2 * 2_200 * units.token_ms_twice) / GPUS
        assert units.gpu_ms(units.uncached_token) / GPUS == Fraction("0.04")
        found[batch] = ms
    assert Fraction("0.245") < found["80"] < Fraction("0.255")
    assert Fraction("0.455") < found["32"] < Fraction("0.465")
    assert Fraction("0.175") < found["160"] < Fraction("0.185")


def test_a_step_is_given_or_recorded_or_the_models() -> None:
    """In that order."""
    work = some_work(3, uncached=1, output=11, held_ms=200)
    assert a_round_model().step_of(work) == 20
    assert DEFAULT_PROFILE.step_of(work) == 20
    assert DEFAULT_PROFILE.step_of(EngineWork()) == Fraction("14.774")


def test_work_adds_up() -> None:
    """Count by count."""
    one, two = EngineWork(*range(7)), EngineWork(*range(10, 17))
    assert total_work([one, two, EngineWork()]) == EngineWork(10, 12, 14, 16, 18, 20, 22)


def test_constants_that_were_set_are_told() -> None:
    """The source says which are not its own."""
    model = with_coefficients(DEFAULT_PROFILE, {"scale": "1.05", "b1": "0.041"})
    assert (model.scale, model.b1, model.a0) == (
        Fraction("1.05"),
        Fraction("0.041"),
        Fraction("11.07"),
    )
    assert model.source.endswith("; set by hand: b1, scale")
    assert with_coefficients(DEFAULT_PROFILE, {}) == DEFAULT_PROFILE


@pytest.mark.parametrize(
    "texts",
    [
        {"c0": "1"},
        {"a0": "-1"},
        {"a0": "1e3"},
        {"a0": "NaN"},
        {"batch": "0"},
        {"step": "0.0"},
        {"gpus": ""},
        dict.fromkeys(("a0", "a1", "a2", "b0", "b1", "b2"), "0"),
        {"a0": "0", "a1": "0"},
    ],
)
def test_constants_that_are_none(texts: dict[str, str]) -> None:
    """Refused: unknown, no plain decimal, zero where it divides, no work at all."""
    with pytest.raises(InvalidQuantity):
        with_coefficients(DEFAULT_PROFILE, texts)

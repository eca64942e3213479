"""Distributions of lengths: what is drawn, and how they are written."""

import random
from statistics import fmean

import pytest

from backend.loadtest.lengths import SEEDLIKE_OUTPUT, Lengths
from backend.loadtest.workload_error import WorkloadError


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - lengths and times, no secrets


def test_fixed_is_always_the_same() -> None:
    lengths = Lengths.parse("fixed:17")
    assert [lengths.draw(chance(n)) for n in range(5)] == [17] * 5


def test_uniform_reaches_both_ends_and_nothing_beyond() -> None:
    lengths, rng = Lengths.parse("uniform:819-821"), chance(1)
    assert {lengths.draw(rng) for _ in range(200)} == {819, 820, 821}


def test_a_lognormal_has_the_mean_it_names_before_clipping() -> None:
    lengths, rng = Lengths.parse("lognormal:1000,0.5"), chance(1)
    # The standard error: 1000 * sqrt(exp(0.25) - 1) / sqrt(20,000) = 3.8.
    assert fmean(lengths.draw(rng) for _ in range(20_000)) == pytest.approx(1000, abs=19)


def test_a_lognormal_is_clipped_at_both_ends() -> None:
    lengths, rng = Lengths.parse("lognormal:404,0.9,300-500"), chance(1)
    drawn = [lengths.draw(rng) for _ in range(500)]
    assert (min(drawn), max(drawn)) == (300, 500)


def test_sigma_0_is_the_mean_itself() -> None:
    assert Lengths.lognormal(824, 0).draw(chance(1)) == 824


@pytest.mark.parametrize(
    "text", ["fixed:1", "uniform:819-1024", "lognormal:404,0.9,8-4096", str(SEEDLIKE_OUTPUT)]
)
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert str(Lengths.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "fixed:0",
        "fixed:-3",
        "fixed:1.5",
        "fixed:99999999",
        "uniform:5-4",
        "uniform:0-4",
        "lognormal:404",
        "lognormal:0,1",
        "lognormal:404,9",
        "lognormal:404,0.9,9-8",
        "normal:4,2",
    ],
)
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        Lengths.parse(text)
    assert len(str(refused.value)) > 20
    assert "\n" not in str(refused.value)

"""Shared prefixes: their popularity, their lengths, how they are written."""

import random
from collections import Counter

import pytest

from backend.loadtest.lengths import Lengths
from backend.loadtest.prefix_templates import SEEDLIKE_PREFIXES, PrefixTemplates
from backend.loadtest.workload_error import WorkloadError


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - lengths and times, no secrets


def test_the_mean_prefix_as_chosen_is_the_one_asked_for() -> None:
    for seed in range(5):
        drawn = SEEDLIKE_PREFIXES.draw(chance(seed))
        weights = [1 / rank for rank in range(1, 401)]
        weighted = sum(w * s.tokens for w, s in zip(weights, drawn.segments, strict=True))
        assert weighted / sum(weights) == pytest.approx(1200, abs=1)
        assert len(drawn.segments) == len({segment.key for segment in drawn.segments}) == 400


def test_popularity_follows_the_rank() -> None:
    rng = chance(3)
    drawn = PrefixTemplates(3, 1.0, Lengths.fixed(10)).draw(rng)
    chosen = Counter(drawn.choose(rng) for _ in range(11_000))
    # 6 : 3 : 2 of 11 parts; five standard errors are at most 265.
    for number, expected in enumerate((6_000, 3_000, 2_000)):
        assert chosen[number] == pytest.approx(expected, abs=265)


def test_an_exponent_of_0_makes_all_alike() -> None:
    drawn = PrefixTemplates(4, 0.0, Lengths.fixed(10)).draw(chance(1))
    assert drawn.summed_weights == [1, 2, 3, 4]


def test_fixed_lengths_are_not_scaled() -> None:
    drawn = PrefixTemplates(4, 2.0, Lengths.fixed(10)).draw(chance(1))
    assert [segment.tokens for segment in drawn.segments] == [10] * 4


def test_none_has_no_segments() -> None:
    assert PrefixTemplates.parse("none").draw(chance(1)).segments == []


@pytest.mark.parametrize("text", ["none", "400/1/lognormal:1200,0.7,1-32768", "5/0.5/fixed:64"])
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert str(PrefixTemplates.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "400", "400/1", "x/1/fixed:2", "400/11/fixed:2", "100001/1/fixed:2", "4/1/fixed:0"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(WorkloadError):
        PrefixTemplates.parse(text)

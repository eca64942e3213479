"""R24: without a maximum the reservation follows what a tenant's answers are like."""

import random

import hypothesis.strategies as st
from hypothesis import given

from gateway.domain.expected_output import OBSERVATIONS_MIN, WEIGHT_MAX, ExpectedOutput


def learned_from(*outputs: int) -> ExpectedOutput:
    learned = ExpectedOutput()
    for output in outputs:
        learned.observe("acme", "m", output)
    return learned


def expected(learned: ExpectedOutput, tenant: str = "acme", model: str = "m") -> int:
    return learned.tokens(tenant, model, default=256)


def test_r24_cold_it_is_the_models_default() -> None:
    """Also one observation before enough of them; the twentieth counts."""
    learned = learned_from(*[7] * (OBSERVATIONS_MIN - 1))
    assert expected(learned) == 256
    learned.observe("acme", "m", 7)
    assert expected(learned) == 7


def test_r24_is_learned_per_tenant_and_model() -> None:
    """INV-12: nothing of another tenant's, and nothing of another model's."""
    learned = learned_from(*[7] * 50)
    assert expected(learned, tenant="globex") == 256
    assert expected(learned, model="n") == 256


@given(outputs=st.lists(st.integers(0, 2**31), min_size=OBSERVATIONS_MIN, max_size=200))
def test_nine_in_ten_do_not_pass_it(outputs: list[int]) -> None:
    """And it is at most an eighth above the least such number."""
    told = expected(learned_from(*outputs))
    assert sum(output > told for output in outputs) <= len(outputs) / 10
    least = sorted(outputs)[min(len(outputs) - 1, len(outputs) * 9 // 10)]
    assert told <= max(1, least) * 9 / 8


def test_it_follows_a_tenant_that_changes() -> None:
    """Once 1,000 long answers, then short ones: within as many as it remembers."""
    learned = learned_from(*[1000] * 1000)
    assert 1000 <= expected(learned) <= 1125
    for _ in range(WEIGHT_MAX * 5):
        learned.observe("acme", "m", 10)
    assert expected(learned) == 10


def test_rare_lengths_do_not_fade_sooner_than_common_ones() -> None:
    """A tail of lengths seen once each is as heavy after many halvings as before."""
    rng = random.Random(5)  # noqa: S311 - the same numbers each time
    outputs = [
        rng.randint(1, 9) if rng.random() < 0.8 else rng.randint(500, 5000) for _ in range(9000)
    ]
    assert 2000 <= expected(learned_from(*outputs)) <= 3600


def test_memory_is_bounded() -> None:
    """The pair that was used least recently is forgotten; to look is to use."""
    learned = ExpectedOutput(pairs_max=2)
    for tenant in ("a", "b"):
        for _ in range(OBSERVATIONS_MIN):
            learned.observe(tenant, "m", 3)
    assert expected(learned, tenant="a") == 3
    learned.observe("c", "m", 3)
    assert len(learned) == 2
    assert expected(learned, tenant="b") == 256
    assert expected(learned, tenant="a") == 3

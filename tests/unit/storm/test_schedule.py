"""The storm's schedule: five times each limit, the same for the same seed."""

from collections import Counter

import pytest
from storm.schedule import schedule
from storm.tenants import PROMPT_TOKENS, TENANTS


def test_the_same_seed_is_the_same_storm() -> None:
    """And another is another."""
    first, again, other = (
        schedule(TENANTS, seed=seed, seconds=10, gateways=4) for seed in (7, 7, 8)
    )
    assert first == again != other
    assert [shot.at_s for shot in first] == sorted(shot.at_s for shot in first)


def test_every_tenant_asks_five_times_what_it_may() -> None:
    """Requests a minute and tokens a minute can be counted by hand."""
    shots = schedule(TENANTS, seed=1, seconds=600, gateways=4)
    asked = Counter(shot.mix.name for shot in shots)
    assert asked["requests"] == pytest.approx(5 * 30 * 10, rel=0.1)
    assert asked["mixed"] == pytest.approx(5 * 60 * 10, rel=0.1)
    needs = sum(
        PROMPT_TOKENS + shot.body["max_tokens"] for shot in shots if shot.mix.name == "tokens"
    )
    assert needs == pytest.approx(5 * 1500 * 10, rel=0.1)
    short = schedule(TENANTS, seed=1, seconds=30, gateways=4)
    assert Counter(shot.mix.name for shot in short)["requests"] == pytest.approx(5 * 30, rel=0.3)


def test_the_storm_has_all_its_kinds() -> None:
    """Both endpoints, choices, lists, streams, open ends, leaves, every gateway and key."""
    shots = schedule(TENANTS, seed=1, seconds=60, gateways=4)
    assert {shot.path for shot in shots} == {"/v1/chat/completions", "/v1/completions"}
    assert {shot.sequences for shot in shots} == {1, 2, 3, 4}
    assert {shot.body.get("n", 1) for shot in shots} == {1, 2, 3}
    assert {shot.body["stream"] for shot in shots} == {True, False}
    assert {"max_tokens" in shot.body for shot in shots} == {True, False}
    assert {shot.gateway for shot in shots} == {0, 1, 2, 3}
    assert {shot.key for shot in shots} == {0, 1}
    leaving = [shot for shot in shots if shot.leave_after_s is not None]
    assert 0.05 < len(leaving) / len(shots) < 0.3

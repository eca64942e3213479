"""What holds of any run: shares are shares, percentiles in order, goodput of what finished."""

import math

import hypothesis.strategies as st
from hypothesis import given, settings
from made_up_runs import outcome, run_of

from backend.loadtest.knee import Knee, Trial
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.run import Outcome
from backend.loadtest.summarise import summarise
from backend.loadtest.summary import Group

DURATION_MS = 10_000.0
MILLISECONDS = st.floats(0, 20_000, allow_nan=False)
OUTCOME = st.builds(
    outcome,
    st.just(0),
    send_at_ms=st.floats(0, DURATION_MS - 1),
    lag_ms=st.floats(0, 50),
    ttft_ms=st.none() | MILLISECONDS,
    tpot_ms=st.floats(0, 200),
    output_tokens=st.integers(1, 40),
    prompt_tokens=st.integers(1, 9_000),
    cached_tokens=st.none() | st.just(0) | st.just(1),
    end=st.sampled_from(["ok", "ok", "ok", "cut", "timeout", "rate_limited", "unreachable"]),
    tenant=st.sampled_from(["a", "b", "c"]),
    traffic_class=st.sampled_from(["interactive", "batch"]),
)
TARGETS = st.builds(
    GoodputTargets,
    ttft_ms=st.floats(0, 2_000),
    tpot_ms=st.floats(0, 100),
    prompt_tokens_under=st.none() | st.integers(1, 9_000),
)


def holds(group: Group) -> None:
    """What is true of the requests of any group."""
    goodput = group.goodput
    assert 0 <= goodput.good <= group.finished <= group.sent
    assert goodput.attainment_share <= group.finished / max(1, group.sent)
    assert goodput.attainment_share <= min(goodput.ttft_met_share, goodput.tpot_met_share)
    assert goodput.goodput_rps <= group.finished_rps
    for found in (group.ttft, group.tpot, group.itl, group.e2e):
        if found is not None:
            assert found.p50_ms <= found.p95_ms <= found.p99_ms <= found.max_ms
            assert found.mean_ms <= found.max_ms
            assert found.count > 0


@settings(max_examples=150, deadline=None)
@given(st.lists(OUTCOME, max_size=25), TARGETS, st.floats(0, DURATION_MS - 1))
def test_what_holds_of_any_run(
    outcomes: list[Outcome], targets: GoodputTargets, warmup_ms: float
) -> None:
    """And the parts add up to the whole."""
    summary = summarise(run_of(outcomes, duration_ms=DURATION_MS), targets, warmup_ms)
    for group in (summary.all, summary.short_prompts, *summary.by_class, *summary.by_tenant):
        holds(group)
    for parts in (summary.by_class, summary.by_tenant):
        assert sum(group.sent for group in parts) == summary.all.sent
        assert sum(group.goodput.good for group in parts) == summary.all.goodput.good
    assert sum(summary.ends.values()) == summary.all.sent
    assert summary.ttft_for_every_prompt.good <= summary.ttft_for_short_prompts.good
    assert summary.tokens.cached_tokens_per_s <= summary.tokens.input_tokens_per_s
    assert summary.load.in_flight_mean <= summary.load.in_flight_max + 1e-9
    assert summary.itl_distribution_ms == sorted(summary.itl_distribution_ms)


@settings(max_examples=150, deadline=None)
@given(st.floats(0.05, 500), st.floats(0.1, 100), st.integers(0, 10_000))
def test_any_search_ends_beside_the_cliff(at_rps: float, start_rps: float, noise: int) -> None:
    """Whatever the curve does elsewhere: a pass, a fail, and at most 5 % between them."""
    knee = Knee(start_rps, seeds=1)
    asked = 0
    while (rate := knee.next_rate()) is not None:
        asked += 1
        assert asked < 30
        # Beyond the cliff some rates pass by luck.
        lucky = rate > at_rps and hash((round(rate, 6), noise)) % 4 == 0
        share = 1.0 if rate <= at_rps or lucky else 0.0
        knee.observe(rate, [Trial(seed=1, attainment_share=share, goodput_rps=rate * share)])
    result = knee.result
    assert result.done
    if result.knee_rps is not None and result.failed_rps is not None:
        assert result.knee_rps < result.failed_rps
        assert result.failed_rps - result.knee_rps <= 0.05 * result.knee_rps
        assert result.failed_rps > at_rps
    else:
        limit = result.failed_rps if result.knee_rps is None else result.knee_rps
        assert limit is not None
        assert math.isclose(limit, start_rps / 64) or math.isclose(limit, start_rps * 64)

"""What one request measured, by hand."""

import pytest
from made_up_runs import outcome

from backend.loadtest.measure import (
    GoodputTargets,
    counted_by_events,
    e2e_ms,
    good,
    met_ttft,
    tokens_out,
    tpot_ms,
    ttft_ms,
)

TARGETS = GoodputTargets()


def test_latency_counts_from_the_intended_send_time() -> None:
    """Sent 300 ms late, first token 400 ms after the plan: TTFT is 400 ms, not 100."""
    late = outcome(send_at_ms=1_000, lag_ms=300, ttft_ms=400, tpot_ms=10, output_tokens=11)
    assert ttft_ms(late) == 400
    assert tpot_ms(late) == 10
    assert e2e_ms(late) == 500


def test_a_single_token_has_no_tpot_and_passes() -> None:
    """(last - first) / 0 is not 0: there is nothing to measure."""
    single = outcome(output_tokens=1)
    assert tpot_ms(single) is None
    assert good(single, TARGETS)


def test_an_answer_that_counts_no_tokens_is_judged_by_its_events() -> None:
    """Eight events, 250 ms apart, without a usage: that is no answer of no tokens which passes."""
    untold = outcome(tpot_ms=250, output_tokens=8)
    untold.output_tokens = 0
    assert counted_by_events(untold)
    assert (tokens_out(untold), tpot_ms(untold)) == (8, 250)
    assert not good(untold, TARGETS)
    untold.output_tokens = 71
    assert not counted_by_events(untold)
    assert (tokens_out(untold), tpot_ms(untold)) == (71, 25)
    assert good(untold, TARGETS)


def test_what_ended_early_or_said_nothing_is_not_counted_by_events() -> None:
    """Its usage was never due; without content there is nothing to count."""
    for lost in (outcome(end="cut"), outcome(ttft_ms=None, end="ok")):
        lost.output_tokens = 0
        assert not counted_by_events(lost)
        assert (tokens_out(lost), tpot_ms(lost)) == (0, None)


@pytest.mark.parametrize(
    ("ttft", "tpot", "met"),
    [(800, 40, True), (800.1, 40, False), (800, 40.1, False), (1, 1, True)],
)
def test_a_target_is_met_at_its_own_value(ttft: float, tpot: float, met: bool) -> None:
    """Both must be met; equal is met."""
    assert good(outcome(ttft_ms=ttft, tpot_ms=tpot, output_tokens=2), TARGETS) is met


def test_what_did_not_end_whole_is_bad_however_fast() -> None:
    """A cut stream and a refusal meet nothing."""
    assert not good(outcome(end="cut"), TARGETS)
    assert not good(outcome(ttft_ms=None, end="rate_limited"), TARGETS)


def test_an_answer_without_a_token_is_bad() -> None:
    """An engine that says nothing at once is not fast."""
    assert not good(outcome(ttft_ms=None, end="ok"), TARGETS)


def test_ttft_may_be_asked_of_short_prompts_only() -> None:
    """Under 4,000 tokens is under: 4,000 itself is long."""
    short_only = GoodputTargets(prompt_tokens_under=4_000)
    assert not met_ttft(outcome(prompt_tokens=3_999, ttft_ms=2_000), short_only)
    assert met_ttft(outcome(prompt_tokens=4_000, ttft_ms=2_000), short_only)
    assert not met_ttft(outcome(prompt_tokens=4_000, ttft_ms=2_000), TARGETS)

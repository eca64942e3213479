"""What one request measured, by hand."""

import pytest
from made_up_runs import outcome

from backend.loadtest.measure import (
    GoodputTargets,
    e2e_ms,
    good,
    met_ttft,
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

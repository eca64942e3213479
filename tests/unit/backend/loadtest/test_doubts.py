"""What a reader is warned of, and what not."""

import pytest
from made_up_runs import outcome, run_of

from backend.loadtest.run import Run
from backend.loadtest.run_table import run_facts
from backend.loadtest.summarise import summarise


def plain() -> Run:
    """A run with nothing to doubt: half of each prompt is cached, of 0.6 that could be."""
    return run_of([outcome(at, send_at_ms=at * 1_000, cached_tokens=500) for at in range(10)])


def test_nothing_is_said_of_a_sound_run() -> None:
    """A warning that always comes warns of nothing."""
    assert summarise(plain()).warnings == []


@pytest.mark.parametrize(
    ("cached", "ideal", "words"),
    [
        (700, 0.6, "above the workload's ideal"),
        (None, 0.6, "does not report cached tokens"),
        (500, 0.95, "The workload itself is unrealistic"),
    ],
)
def test_an_unlikely_hit_rate_is_named(cached: int | None, ideal: float, words: str) -> None:
    """Too high, unknown, or from prompts that only repeat."""
    outcomes = [outcome(at, send_at_ms=at * 1_000, cached_tokens=cached) for at in range(10)]
    (warning,) = summarise(run_of(outcomes, ideal_hit_rate=ideal)).warnings
    assert words in warning


def test_a_chat_templates_own_tokens_are_no_warm_cache() -> None:
    """Prompts of 20 tokens, 12 of them shared, in a template of 30 that every prompt shares: the
    ideal of the plan is 0.6, and 42 of 50 may be found. More is a doubt as before."""
    for cached, warned in ((42, 0), (45, 1)):
        run = run_of(
            [outcome(at, send_at_ms=at * 1_000, prompt_tokens=20) for at in range(10)],
            ideal_hit_rate=0.6,
        )
        for made in run.outcomes:
            made.prompt_tokens, made.cached_tokens = 50, cached
        summary = summarise(run)
        assert summary.hit_rate.unplanned_share == pytest.approx(0.6)
        assert sum("above the workload's ideal" in each for each in summary.warnings) == warned


def test_some_answers_without_cached_tokens_are_counted() -> None:
    """Their share is missing from the hit rate."""
    run = plain()
    run.outcomes[3].cached_tokens = None
    assert summarise(run).warnings == ["1 answers did not report cached tokens."]


def test_answers_of_another_length_than_planned_are_named() -> None:
    """The mix measured is not the mix asked for."""
    run = plain()
    for made in run.outcomes:
        made.output_tokens = 5
    assert any("45.5 % of the output tokens" in warning for warning in summarise(run).warnings)


def test_answers_that_do_not_count_their_tokens_are_named() -> None:
    """Their events stand for tokens, in the output too, and the table says so beside it."""
    run = plain()
    for made in run.outcomes[:3]:
        made.output_tokens = 0
    summary = summarise(run)
    (warning,) = summary.warnings
    assert "3 whole answers did not say how many tokens they had: events were counted" in warning
    assert summary.tokens.output_planned_share == 1
    assert summary.tokens.output_tokens_per_s == pytest.approx(10 * 11 / 10)
    assert dict(run_facts(summary).lines)["tokens"].endswith("by events)")
    assert dict(run_facts(summarise(plain())).lines)["tokens"].endswith("tok/s")


def test_rows_that_do_not_match_are_named() -> None:
    """With both counts."""
    run = plain()
    run.rows_written = 9
    assert any("MISMATCH: 9 were written, 10" in warning for warning in summarise(run).warnings)


def test_a_growing_queue_is_named() -> None:
    """Percentiles of a queue that grows are of how long the run was."""
    outcomes = [
        outcome(at, send_at_ms=at * 1_000, ttft_ms=200 * at + 1, cached_tokens=500)
        for at in range(10)
    ]
    assert any("no steady state" in warning for warning in summarise(run_of(outcomes)).warnings)

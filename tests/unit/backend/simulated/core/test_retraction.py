"""What happens when the next decode step does not fit in the pool."""

import pytest
from simulated_core import Played, played, request, text

from backend.simulated.request import EndReason, SimulatedRequest


def two_that_outgrow_40(**flags: object) -> tuple[Played, SimulatedRequest, SimulatedRequest]:
    """Prompts of 10 and 12, which may have 25 and 15 tokens: the second is let in because of the
    first's 24 to come hardly any is reserved. 22 + 2*9 fill the pool, with 10 tokens each."""
    play = played(max_total_tokens=40, schedule_conservativeness=0.05, **flags)
    short = request(text(10, 100), 25, priority=0)
    long = request(text(12, 200), 15, priority=5, writes=600_000)
    play.submit(short)
    play.step()
    play.submit(long)
    play.run(10)
    assert play.kinds == ["prefill"] * 2 + ["decode"] * 9
    assert (short.generated, long.generated) == (10, 10)
    return play, short, long


def test_of_equal_outputs_the_longest_prompt_goes() -> None:
    """It keeps what it generated, waits, and nothing of its text is kept for it."""
    play, short, long = two_that_outgrow_40()
    play.begin()
    load = play.replica.load()
    assert (load.running, load.waiting, load.retracted) == (1, 1, 1)
    assert load.evictable_tokens == 0  # its prompt made way for the next 20 steps
    assert load.used_tokens == 20
    assert play.end().generated == [short]
    assert (long.generated, long.retractions) == (10, 1)
    assert play.replica.totals.retracted_requests == 1


def test_it_comes_back_and_goes_on_where_it_was() -> None:
    """Its prompt and its output are computed again, and it ends as if nothing had been."""
    play, short, long = two_that_outgrow_40()
    play.run(15)
    assert play.ended == [(short, EndReason.LENGTH)]
    assert play.begin().new_tokens == 22
    assert play.end().generated == [long]
    assert long.generated == 11
    play.drain()
    assert play.ended[-1] == (long, EndReason.LENGTH)
    assert long.generated == 15
    assert long.cached_tokens == 0
    assert play.replica.totals.prefill_tokens == 22 + 22


def test_the_estimate_is_set_by_those_who_stay() -> None:
    """(10 generated + 20 steps) / (25 + 1) is more than all: 1."""
    play, _, _ = two_that_outgrow_40()
    play.begin()
    assert play.replica.load().new_token_ratio == 1.0


def test_the_estimate_after_a_retraction_is_what_was_used_of_the_maximum() -> None:
    """(10 + 20) / (59 + 1)."""
    play = played(max_total_tokens=40, schedule_conservativeness=0.05)
    play.submit(request(text(10, 100), 59))
    play.step()
    play.submit(request(text(12, 200), 14, writes=600_000))
    play.run(10)
    play.begin()
    assert play.replica.load().new_token_ratio == pytest.approx(0.5)


def test_who_has_generated_least_goes_first() -> None:
    """Whatever the prompts."""
    play = played(max_total_tokens=60, schedule_conservativeness=0.05)
    early = request(text(20, 100), 40)
    play.submit(early)
    play.run(5)
    late = request(text(10, 200), 20, writes=600_000)
    play.submit(late)
    while not play.replica.totals.retracted_requests:
        play.step()
    assert (early.retractions, late.retractions) == (0, 1)


def test_by_priority_the_worst_goes_first() -> None:
    """Though its prompt is the shorter."""
    play, short, long = two_that_outgrow_40(
        retraction_policy="priority", enable_priority_scheduling=True
    )
    play.step()
    assert (short.retractions, long.retractions) == (1, 0)


def test_priorities_do_not_count_unless_they_are_enabled() -> None:
    """Then the lengths decide."""
    play, short, long = two_that_outgrow_40(retraction_policy="priority")
    play.step()
    assert (short.retractions, long.retractions) == (0, 1)


def test_the_last_one_is_out_of_memory() -> None:
    """10 and 10 fill the pool; the 11th token is its last, and it ends with no step of its own."""
    play = played(max_total_tokens=20)
    alone = request(text(10), 30)
    play.submit(alone)
    play.run(11)
    assert alone.generated == 11
    step = play.begin()
    assert (step.duration_ms, step.sequences) == (0.0, 0)
    assert play.end().ended == [(alone, EndReason.OUT_OF_MEMORY)]
    assert not play.replica.has_work
    assert play.replica.load().used_tokens == 0


def test_a_prompt_beyond_the_pool_is_out_of_memory() -> None:
    """It does not block those behind it."""
    play = played(max_total_tokens=20)
    beyond, within = request(text(21, 100), 1), request(text(5, 200), 1)
    play.submit(beyond, within)
    play.drain()
    assert play.ended == [(beyond, EndReason.OUT_OF_MEMORY), (within, EndReason.LENGTH)]


def test_a_retracted_one_needs_a_place_in_the_queue() -> None:
    """If there is none it leaves, as SGLang has it."""
    play, short, long = two_that_outgrow_40(max_queued_requests=2)
    play.submit(request(text(5, 900), 30, writes=1), request(text(5, 900), 30, writes=2))
    assert play.step().ended == [(long, EndReason.ABORT)]
    assert short.generated == 11


def test_the_estimate_falls_with_each_decode_step() -> None:
    """From 0.7 to 14 % of it in 600 steps, not further, and back to 0.7 when idle."""
    play = played(max_total_tokens=5000)
    play.submit(request(text(10), 1002))
    play.step()
    ratios = []
    for steps in (300, 300, 400):
        play.run(steps)
        ratios.append(play.replica.load().new_token_ratio)
    assert ratios == pytest.approx([0.399, 0.098, 0.098])
    play.drain()
    assert play.replica.load().new_token_ratio == pytest.approx(0.7)

"""Chunks, mixed steps and the turn of prefill and decode."""

import pytest
from simulated_core import played, request, text


def test_a_long_prompt_is_computed_in_chunks() -> None:
    """Each attends to those before it: the times are 5 + 0.1*N + 0.001*n*(prefix + n/2)."""
    play = played(chunked_prefill_size=10)
    long = request(text(25))
    play.submit(long)
    assert play.step().generated == []
    assert play.step().generated == []
    assert play.step().generated == [long]
    assert [step.new_tokens for step in play.steps] == [10, 10, 5]
    assert [step.duration_ms for step in play.steps] == pytest.approx([6.05, 6.15, 5.6125])
    assert long.started_ms == 0.0
    assert long.first_token_ms == pytest.approx(17.8125)


def test_the_rest_of_a_step_goes_to_the_next_prompt() -> None:
    """Whole, or its first chunk."""
    play = played(chunked_prefill_size=10)
    short, long = request(text(6, 100)), request(text(12, 200))
    play.submit(short, long)
    assert play.step().generated == [short]
    assert play.steps[0].new_tokens == 10
    assert play.step().generated == [long]
    assert play.steps[1].new_tokens == 8
    assert play.steps[1].duration_ms == pytest.approx(5 + 0.8 + 0.001 * 8 * (4 + 4))


def test_chunks_run_back_to_back_before_any_decode() -> None:
    """Prefill first: this is what stalls every stream."""
    play = played(chunked_prefill_size=10)
    play.submit(request(text(5, 100), 9))
    play.step()
    play.submit(request(text(25, 200)))
    play.run(4)
    assert play.kinds == ["prefill"] * 4 + ["decode"]


def test_an_interval_lets_decode_steps_in_between() -> None:
    """Two after each prefill."""
    play = played(chunked_prefill_size=10, prefill_decode_interval=2)
    play.submit(request(text(5, 100), 50))
    play.step()
    play.submit(request(text(25, 200)))
    play.run(8)
    assert play.kinds == ["prefill", *(["decode", "decode", "prefill"] * 2), "decode", "decode"]


def test_an_interval_does_not_hold_up_an_empty_batch() -> None:
    """With nothing to decode the next prefill runs at once."""
    play = played(chunked_prefill_size=10, prefill_decode_interval=2)
    play.submit(request(text(25, 200)))
    play.run(3)
    assert play.kinds == ["prefill"] * 3


def test_a_mixed_step_decodes_beside_a_chunk() -> None:
    """The chunk leaves room for the token of the one that decodes, over 6 tokens of context."""
    play = played(chunked_prefill_size=10, enable_mixed_chunk=True)
    decoding = request(text(5, 100), 50)
    play.submit(decoding)
    play.step()
    play.submit(request(text(25, 200)))
    step = play.begin()
    assert (step.kind, step.new_tokens, step.sequences) == ("mixed", 9, 1)
    assert step.context_tokens == 6
    assert step.duration_ms == pytest.approx(5 + 0.9 + 0.001 * 9 * 4.5 + 1 + 0.06)
    assert play.end().generated == [decoding]


def test_a_decode_step_pays_for_its_batch_and_all_its_context() -> None:
    """A shared prefix counts for each: 10 + 1*2 + 0.01*(21 + 21)."""
    play = played()
    play.submit(request(text(20), 5), request(text(20), 5, writes=600_000))
    play.step()
    assert play.begin().duration_ms == pytest.approx(12.42)
    play.end()
    assert play.begin().context_tokens == 44


def test_a_resumed_prompt_attends_to_what_the_cache_held() -> None:
    """10 cached, 5 new: Q is 5 * 12.5."""
    play = played()
    play.submit(request(text(10), 1))
    play.drain()
    again = request(text(15), 1)
    play.submit(again)
    assert play.begin().duration_ms == pytest.approx(5 + 0.5 + 0.0625)
    assert again.cached_tokens == 10

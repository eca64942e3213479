"""How sequences end, and when an abort takes effect."""

import pytest
from simulated_core import played, request, text

from backend.simulated.request import EndReason, SimulatedRequest


@pytest.mark.parametrize(
    ("sent", "generated", "reason"),
    [
        (request(text(5), 3), 3, EndReason.LENGTH),
        (request(text(5), 3, ends_after=3), 3, EndReason.LENGTH),
        (request(text(5), 3, ends_after=2), 2, EndReason.STOP),
        (request(text(5), 3, ends_after=1), 1, EndReason.STOP),
        (request(text(5), 3, ends_after=2, ignore_eos=True), 3, EndReason.LENGTH),
        (request(text(5), 0), 0, EndReason.LENGTH),
    ],
)
def test_a_text_ends_by_itself_or_is_cut(
    sent: SimulatedRequest, generated: int, reason: EndReason
) -> None:
    """One that may have no token ends with its prompt's step."""
    play = played()
    play.submit(sent)
    play.run(max(generated, 1))
    assert play.ended == [(sent, reason)]
    assert sent.generated == generated
    assert not play.replica.has_work
    assert (sent.first_token_ms is None) is (generated == 0)


def test_who_waits_leaves_at_once() -> None:
    """And is not heard of again."""
    play = played(max_running_requests=1)
    running, waiting = request(text(5), 3), request(text(5, 100), 3)
    play.submit(running, waiting)
    play.begin()
    assert play.replica.abort(waiting, play.now_ms)
    play.end()
    play.drain()
    assert play.ended == [(running, EndReason.LENGTH)]
    assert play.replica.totals.aborted == 1


def test_who_runs_leaves_with_the_step_in_flight() -> None:
    """With the token it brings, and its text stays cached."""
    play = played()
    running = request(text(5), 9)
    play.submit(running)
    play.step()
    play.begin()
    assert not play.replica.abort(running, play.now_ms)
    assert play.end().ended == [(running, EndReason.ABORT)]
    assert running.generated == 2
    assert play.replica.load().evictable_tokens == 6
    assert play.replica.abort(running, play.now_ms)


def test_who_runs_leaves_with_a_step_it_has_no_part_in() -> None:
    """A prefill of someone else."""
    play = played()
    running = request(text(5), 9)
    play.submit(running)
    play.step()
    play.submit(request(text(5, 100), 9))
    assert play.begin().kind == "prefill"
    play.replica.abort(running, play.now_ms)
    assert (running, EndReason.ABORT) in play.end().ended
    assert running.generated == 1


def test_half_a_prompt_leaves_without_its_last_chunk() -> None:
    """What earlier steps computed stays cached."""
    play = played(chunked_prefill_size=10)
    long = request(text(30), 9)
    play.submit(long)
    play.step()
    play.begin()
    assert not play.replica.abort(long, play.now_ms)
    assert play.end().ended == [(long, EndReason.ABORT)]
    load = play.replica.load()
    assert (load.used_tokens, load.evictable_tokens) == (0, 10)


@pytest.mark.parametrize("chunk", [10, 100])
def test_between_steps_everyone_leaves_at_once(chunk: int) -> None:
    """Half computed or running."""
    play = played(chunked_prefill_size=chunk)
    sent = request(text(30), 9)
    play.submit(sent)
    play.step()
    assert play.replica.abort(sent, play.now_ms)
    assert not play.replica.has_work
    assert play.replica.load().used_tokens == 0
    assert play.replica.begin_step(play.now_ms) is None


def test_an_end_decided_without_a_step_is_reported_not_aborted() -> None:
    """The abort comes too late: it stands in the step's `ended` once."""
    play = played(max_total_tokens=20)
    alone = request(text(10), 30)
    play.submit(alone)
    play.run(11)
    play.begin()
    assert not play.replica.abort(alone, play.now_ms)
    assert play.end().ended == [(alone, EndReason.OUT_OF_MEMORY)]


def test_a_stop_string_ends_it_between_steps() -> None:
    """What it generated is cached but for its last token."""
    play = played()
    sent, other = request(text(5), 9), request(text(5, 100), 9)
    play.submit(sent, other)
    play.run(3)
    play.replica.stop(sent, play.now_ms)
    assert play.replica.load().running == 1
    assert play.replica.load().evictable_tokens == 7
    play.drain()
    assert play.ended == [(other, EndReason.LENGTH)]
    play.replica.stop(sent, play.now_ms)


def test_misuse_is_refused() -> None:
    """Steps do not overlap, and a prompt has a token."""
    play = played()
    with pytest.raises(RuntimeError):
        play.replica.end_step(0.0)
    with pytest.raises(ValueError, match="at least one token"):
        play.replica.submit(request(b""), 0.0)
    sent = request(text(5), 9)
    play.submit(sent)
    play.begin()
    with pytest.raises(RuntimeError):
        play.replica.begin_step(0.0)
    with pytest.raises(RuntimeError):
        play.replica.stop(sent, 0.0)

"""Who gets into a prefill step."""

import pytest
from simulated_core import played, request, text


@pytest.mark.parametrize(
    ("ignore_eos", "most", "admitted"),
    # A holds 10 of 100 and has 1 of 20 tokens: 19 to come, times 0.7 unless it will use them all.
    # B needs 50 + its maximum + 1, and must leave something: < 90 - 13.3, or < 90 - 19.
    [(False, 25, True), (False, 26, False), (True, 19, True), (True, 20, False)],
)
def test_what_may_still_be_generated_is_reserved(
    ignore_eos: bool, most: int, admitted: bool
) -> None:
    """Of those who run a share, of the newcomer all."""
    play = played(max_total_tokens=100)
    play.submit(request(text(10), 20, ignore_eos=ignore_eos))
    play.step()
    play.submit(request(text(50, 1000), most))
    assert play.begin().kind == ("prefill" if admitted else "decode")


@pytest.mark.parametrize(("pool", "admitted"), [(4166, True), (4165, False)])
def test_no_more_than_4096_tokens_are_reserved(pool: int, admitted: bool) -> None:
    """For a newcomer with a large maximum: 50 + 4096 + 1, beside 10 held and 0.7 * 11 to come."""
    play = played(max_total_tokens=pool - 1)
    play.submit(request(text(10), 12))
    play.step()
    play.submit(request(text(50, 1000), 100_000))
    assert (play.begin().kind == "prefill") is admitted


@pytest.mark.parametrize(("pool", "admitted"), [(4159, True), (4158, False)])
def test_no_more_than_4096_tokens_are_reserved_for_who_runs(pool: int, admitted: bool) -> None:
    """The newcomer needs 50 + 1 + 1, beside 10 held and 4096."""
    play = played(max_total_tokens=pool)
    play.submit(request(text(10), 10_000, ignore_eos=True))
    play.step()
    play.submit(request(text(50, 1000), 1))
    assert (play.begin().kind == "prefill") is admitted


@pytest.mark.parametrize(("most", "together"), [(47, True), (48, False)])
def test_newcomers_of_one_step_reserve_in_full(most: int, together: bool) -> None:
    """The second needs 10 + its maximum + 1 of what the first's 10 + 30 + 1 leave of 100."""
    play = played(max_total_tokens=100)
    play.submit(request(text(10, 100), 30), request(text(10, 200), most))
    assert play.begin().new_tokens == (20 if together else 10)


def test_evictable_text_counts_as_room() -> None:
    """And is evicted for what comes."""
    play = played(max_total_tokens=100)
    play.submit(request(text(60), 1))
    play.drain()
    assert play.replica.load().evictable_tokens == 60
    play.submit(request(text(70, 1000), 5))
    play.step()
    assert play.replica.load().used_tokens == 70
    assert play.replica.totals.evicted_tokens == 60


def test_the_prefix_it_stands_on_is_no_room() -> None:
    """What a newcomer shares is locked for it before the rest is weighed."""
    play = played(max_total_tokens=100)
    play.submit(request(text(60), 1))
    play.drain()
    play.submit(request(text(5, 1000), 30))
    play.step()  # holds 5; 29 * 0.7 = 20.3 to come
    play.submit(request(text(70), 4))  # 10 + 4 + 1 < 100 - 5 - 60 - 20.3 = 14.7 is false
    assert play.begin().kind == "decode"


def test_a_step_takes_prompts_until_its_tokens_are_spent() -> None:
    """The one that goes beyond `max_prefill_tokens` is the last."""
    play = played(max_prefill_tokens=10, chunked_prefill_size=100)
    play.submit(*(request(text(6, 100 * n)) for n in range(1, 4)))
    assert play.begin().new_tokens == 12


def test_without_chunking_the_second_may_not_go_beyond() -> None:
    """But the first may."""
    play = played(max_prefill_tokens=10, chunked_prefill_size=-1)
    prompts = (text(40), text(6, 100), text(3, 200), text(6, 300), text(4, 400))
    play.submit(*map(request, prompts))
    play.run(4)
    assert [step.new_tokens for step in play.steps] == [40, 9, 6, 4]


def test_no_more_run_than_may() -> None:
    """The third waits until one of two has ended."""
    play = played(max_running_requests=2)
    third = request(text(5, 300))
    play.submit(request(text(5, 100), 2), request(text(5, 200), 3), third)
    assert play.begin().new_tokens == 10
    play.end()
    play.step()
    assert third.started_ms is None
    assert play.begin().new_tokens == 5
    assert play.kinds == ["prefill", "decode", "prefill"]


def test_a_newcomer_alone_is_not_kept_out_by_its_estimate() -> None:
    """Nothing would ever change for it."""
    play = played(max_total_tokens=100, page_size=16)
    alone = request(text(80), 15)
    play.submit(alone)
    play.drain()
    assert alone.generated == 15


def test_a_full_batch_is_not_tried_again_until_someone_leaves() -> None:
    """Though the estimate has come down meanwhile: 50 + 1240 + 1 is not less than 1990 - 0.7 * 999,
    but would be less than 1985 - 0.695 * 994."""
    play = played(max_total_tokens=2000)
    running = request(text(10), 1000)
    play.submit(running)
    play.step()
    play.submit(request(text(50, 1000), 1240))
    play.run(6)
    assert play.kinds == ["prefill"] + ["decode"] * 6
    play.replica.abort(running, play.now_ms)
    assert play.begin().kind == "prefill"

"""What a replica says of its load."""

import pytest
from simulated_core import played, request, text


def test_a_snapshot_is_published_after_each_prefill_and_every_15_decode_steps() -> None:
    """And when it falls idle; in between it lags."""
    play = played()
    assert play.replica.published.running == 0
    play.submit(request(text(10), 33))
    assert play.replica.published.waiting == 0
    seen = []
    while play.replica.has_work:
        play.step()
        seen.append(play.replica.published.used_tokens)
    assert seen == [10] * 15 + [25] * 15 + [40] * 2 + [0]


def test_a_prefill_starts_the_count_anew() -> None:
    """15 decode steps from there."""
    play = played()
    play.submit(request(text(10), 100))
    play.run(11)
    play.submit(request(text(10, 100), 100))
    play.step()
    assert play.replica.published.used_tokens == 30
    play.run(14)
    assert play.replica.published.used_tokens == 30
    play.step()
    assert play.replica.published.used_tokens == 60


def test_the_interval_is_a_flag() -> None:
    """Every step."""
    play = played(load_snapshot_publish_interval=1)
    play.submit(request(text(10), 100))
    play.run(3)
    assert play.replica.published.used_tokens == 12


def test_an_idle_full_cache_is_no_load() -> None:
    """Evictable text is not used."""
    play = played(max_total_tokens=100)
    play.submit(request(text(90), 5))
    play.step()
    assert play.replica.load().token_usage == pytest.approx(0.9)
    play.drain()
    load = play.replica.published
    assert (load.used_tokens, load.evictable_tokens, load.token_usage) == (0, 94, 0.0)
    assert load.max_total_tokens == 100


def test_tokens_that_wait_are_reckoned_with_the_recent_hit_rate() -> None:
    """30 of 40 tokens were found: of 100 that wait 25 remain, with 100 in the total."""
    play = played(max_running_requests=1)
    play.submit(request(text(30), 1))
    play.drain()
    play.submit(request(text(40), 9))
    play.now_ms += 16_000  # the first, wholly new prompt is out of the window
    play.step()
    play.submit(request(text(60, 100)), request(text(40, 300)))
    load = play.replica.load()
    assert load.cache_hit_rate == pytest.approx(0.75)
    assert load.waiting == 2
    assert load.waiting_uncached_tokens == 25
    assert load.total_tokens == load.used_tokens + 100


def test_under_lpm_they_are_known() -> None:
    """As of when the queue was last ordered: 40 found, 60 new."""
    play = played(max_total_tokens=80, schedule_policy="lpm")
    play.submit(request(text(40), 30))
    play.step()
    play.submit(request(text(100), 4))
    play.step()
    assert play.replica.load().waiting_uncached_tokens == 60


def test_generated_tokens_a_second_over_40_decode_steps() -> None:
    """40 steps of 10 + 1*2 ms and 0.01 a token of context: 80 tokens in what they took."""
    play = played()
    play.submit(request(text(10, 100), 50), request(text(10, 200), 50))
    play.step()
    started_ms = play.now_ms
    play.run(40)
    # The first report counts from time 0, the prefill's 7 ms included.
    assert started_ms == pytest.approx(7.1, abs=0.2)
    assert play.replica.load().gen_throughput == pytest.approx(80 / play.now_ms * 1000)


def test_totals_add_up() -> None:
    """Tokens, steps and time, by kind."""
    play = played()
    play.submit(request(text(10, 100), 5), request(text(20, 200), 3))
    play.drain()
    play.submit(request(text(20, 200), 1))
    play.drain()
    totals = play.replica.totals
    assert totals.requests == 3
    assert (totals.prefill_tokens, totals.cached_tokens) == (31, 19)
    assert totals.generated_tokens == 9
    assert totals.steps == {"prefill": 2, "decode": 4}
    assert sum(totals.busy_ms.values()) == pytest.approx(play.now_ms)

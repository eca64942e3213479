"""What running sequences leave in the prefix cache, and what it costs the pool."""

from simulated_core import played, request, text


def cached_of(play_flags: dict[str, object], first: bytes, second: bytes) -> int:
    play = played(**play_flags)
    play.submit(request(first, 1))
    play.drain()
    again = request(second, 1)
    play.submit(again)
    play.drain()
    return again.cached_tokens


def test_a_repeated_prompt_is_cached_but_for_its_last_token() -> None:
    """In whole pages."""
    assert cached_of({}, text(20), text(20)) == 19
    assert cached_of({}, text(20), text(30)) == 20
    assert cached_of({"page_size": 4}, text(20), text(20)) == 16
    assert cached_of({"page_size": 4}, text(20), text(21)) == 20
    assert cached_of({"disable_radix_cache": True}, text(20), text(20)) == 0


def test_another_salt_finds_nothing() -> None:
    """Whatever the text."""
    play = played()
    play.submit(request(text(20), 1, salt=b"a"))
    play.drain()
    other = request(text(20), 1, salt=b"b")
    play.submit(other)
    play.drain()
    assert other.cached_tokens == 0


def test_what_was_generated_is_cached_but_for_the_last_token() -> None:
    """Whose own KV was never computed."""
    play = played()
    play.submit(request(text(20), 5, writes=7000))
    play.drain()
    follow_up = request(text(20) + text(5, 7000) + text(3, 9000), 1)
    play.submit(follow_up)
    play.drain()
    assert follow_up.cached_tokens == 24


def test_a_chunk_is_cached_when_it_is_computed() -> None:
    """While the prompt it belongs to is still under way."""
    play = played(chunked_prefill_size=10)
    play.submit(request(text(30), 1))
    play.step()
    load = play.replica.load()
    assert load.used_tokens == 10
    assert load.waiting_uncached_tokens == 20
    other = request(text(10) + text(5, 900), 1)
    play.submit(other)
    play.drain()
    assert other.cached_tokens == 10


def test_text_computed_twice_at_once_is_kept_once() -> None:
    """The second copy is freed when both are in the cache."""
    play = played()
    play.submit(request(text(10), 9), request(text(10), 9, writes=600_000))
    play.begin()
    assert play.replica.load().used_tokens == 20
    play.end()
    assert play.replica.load().used_tokens == 10
    play.step()
    assert play.replica.load().used_tokens == 12


def test_the_output_goes_before_its_prompt() -> None:
    """Eviction takes it as a leaf of its own: 10 of 30 tokens, not all."""
    play = played(max_total_tokens=100)
    play.submit(request(text(20), 11, writes=7000))
    play.drain()
    assert play.replica.load().evictable_tokens == 30
    play.submit(request(text(75, 2000), 1))
    play.step()
    assert play.replica.totals.evicted_tokens == 10


def test_a_page_is_taken_when_the_one_before_is_full() -> None:
    """6 tokens hold two pages of 4; the third is taken for the 9th."""
    play = played(page_size=4)
    play.submit(request(text(6), 9))
    used = []
    for _ in range(5):
        play.begin()
        used.append(play.replica.load().used_tokens)
        play.end()
    assert used == [8, 8, 8, 12, 12]


def test_a_flush_empties_an_idle_cache_only() -> None:
    """As /flush_cache does."""
    play = played()
    play.submit(request(text(20), 2))
    assert not play.replica.flush_cache()
    play.drain()
    assert play.replica.load().evictable_tokens == 21
    assert play.replica.flush_cache()
    assert play.replica.load().evictable_tokens == 0

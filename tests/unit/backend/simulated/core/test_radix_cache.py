"""The radix tree that stands for the KV cache's contents."""

import pytest
from simulated_core import ids, text

from backend.simulated.flags import EvictionPolicy
from backend.simulated.radix_cache import RadixCache


def held(cache: RadixCache, prompt: bytes, salt: bytes = b"") -> int:
    return cache.match(prompt, len(prompt) // 4, salt)[0]


def test_the_longest_prefix_is_found_across_splits() -> None:
    """Texts that part are stored once up to where they part."""
    cache = RadixCache(1)
    assert cache.insert(ids(1, 2, 3, 4), 4, b"")[0] == 0
    assert cache.insert(ids(1, 2, 5, 6), 4, b"")[0] == 2
    assert cache.insert(ids(1, 2, 5, 6, 7), 5, b"")[0] == 4
    assert cache.tokens == 4 + 2 + 1
    assert held(cache, ids(1, 2, 3, 4, 9)) == 4
    assert held(cache, ids(1, 2, 5, 6, 7)) == 5
    assert held(cache, ids(1, 2, 9)) == 2
    assert held(cache, ids(9)) == 0


def test_no_more_than_asked_is_matched() -> None:
    """A prompt's last token is to be computed even if it is held."""
    cache = RadixCache(1)
    cache.insert(text(10), 10, b"")
    assert cache.match(text(10), 9, b"")[0] == 9
    assert cache.tokens == 10


def test_salts_share_nothing() -> None:
    """Nor do a salt and another that begins with it."""
    cache = RadixCache(1)
    cache.insert(text(10), 10, b"a")
    assert held(cache, text(10), b"") == 0
    assert held(cache, text(10), b"ab") == 0
    assert held(cache, text(10), b"a") == 10


def test_only_whole_pages_are_held() -> None:
    """And two texts that part within a page share none of it."""
    cache = RadixCache(4)
    cache.insert(text(11), 11, b"")
    assert cache.tokens == 8
    assert held(cache, text(11)) == 8
    assert held(cache, ids(1, 2, 3, 4, 5, 6, 99, 98)) == 4
    assert held(cache, ids(1, 2, 99, 98)) == 0


def test_the_least_recently_used_leaf_goes_first_and_whole() -> None:
    """A match counts as use, for the whole piece it ends in; a parent goes after its children."""
    cache = RadixCache(1)
    cache.insert(text(10, 100), 10, b"")
    cache.insert(text(20, 200), 20, b"")
    assert held(cache, text(4, 100)) == 4  # cuts it in 4 and 6
    assert cache.evict(1) == 20
    assert cache.evict(1) == 6
    assert held(cache, text(10, 100)) == 4
    cache.insert(text(5, 300), 5, b"")
    assert held(cache, text(4, 100)) == 4
    assert cache.evict(6) == 5 + 4
    assert cache.tokens == 0


def test_what_is_locked_stays() -> None:
    """With all that leads to it; its siblings may go."""
    cache = RadixCache(1)
    _, node = cache.insert(ids(1, 2, 3, 4), 4, b"")
    cache.lock(node)
    cache.insert(ids(1, 2, 5, 6, 7), 5, b"")
    assert (cache.locked_tokens, cache.evictable_tokens) == (4, 3)
    assert cache.evict(100) == 3
    assert held(cache, ids(1, 2, 3, 4)) == 4
    cache.unlock(node)
    assert (cache.locked_tokens, cache.evictable_tokens) == (0, 4)
    assert cache.evict(1) == 2
    assert cache.evict(1) == 2


def test_a_lock_held_twice_is_released_twice() -> None:
    """Two sequences on the same text."""
    cache = RadixCache(1)
    _, node = cache.insert(text(5), 5, b"")
    cache.lock(node)
    cache.lock(node)
    cache.unlock(node)
    assert cache.evict(5) == 0
    with pytest.raises(RuntimeError):
        cache.clear()
    cache.unlock(node)
    cache.clear()
    assert held(cache, text(5)) == 0


@pytest.mark.parametrize(
    ("policy", "thrice_then_twice", "then_the_first_used", "twice_then_once"),
    [("lru", 10, 20, 10), ("lfu", 20, 20, 20), ("slru", 10, 20, 20)],
)
def test_each_policy_has_its_own_order(
    policy: EvictionPolicy, thrice_then_twice: int, then_the_first_used: int, twice_then_once: int
) -> None:
    """Of a text of 10 tokens put in so often and then one of 20: which goes first."""

    def first_to_go(earlier: int, later: int, *, used: bool = False) -> int:
        cache = RadixCache(1, policy)
        for _ in range(earlier):
            cache.insert(text(10, 100), 10, b"")
        for _ in range(later):
            cache.insert(text(20, 200), 20, b"")
        if used:
            held(cache, text(10, 100))
        return cache.evict(1)

    assert first_to_go(3, 2) == thrice_then_twice
    assert first_to_go(3, 2, used=True) == then_the_first_used
    assert first_to_go(2, 1) == twice_then_once

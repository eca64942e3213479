"""Cached prefixes, their salts and their room."""

from backend.simulated.prefix_cache import PrefixCache


def test_longest_prefix() -> None:
    """As many leading tokens match as are held, never all of a prompt."""
    cache = PrefixCache(100)
    cache.insert(b"s", [1, 2, 3, 4])
    assert cache.match(b"s", [1, 2, 3, 4]) == 3
    assert cache.match(b"s", [1, 2, 3, 4, 5]) == 4
    assert cache.match(b"s", [1, 2, 9, 4]) == 2
    assert cache.match(b"s", [2, 3, 4]) == 0
    assert cache.match(b"s", []) == 0


def test_salts_are_apart() -> None:
    """Under another salt nothing is known."""
    cache = PrefixCache(100)
    cache.insert(b"a", [1, 2, 3])
    assert cache.match(b"b", [1, 2, 3]) == 0
    assert len(cache) == 3


def test_eviction() -> None:
    """Where room is needed, what was used longest ago goes, and of it the tail first."""
    cache = PrefixCache(6)
    cache.insert(b"s", [1, 2, 3, 4])
    cache.insert(b"s", [5, 6, 7, 8])
    assert len(cache) == 6
    assert cache.match(b"s", [5, 6, 7, 8, 9]) == 4
    assert cache.match(b"s", [1, 2, 3, 4, 9]) == 2
    cache.shrink(1)
    assert cache.match(b"s", [5, 6, 7, 8, 9]) == 1
    cache.clear()
    assert len(cache) == 0

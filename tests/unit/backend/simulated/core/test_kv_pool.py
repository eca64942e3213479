"""What a sequence holds of the pool, and what it leaves there."""

import pytest
from simulated_core import request, text

from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place


def test_recomputed_output_is_a_leaf_of_its_own() -> None:
    """The cache is cut where the prompt ends, though both were computed at once: eviction takes
    the 4 tokens of output first."""
    pool = KvPool(100, 1, cached=True)
    sent = request(text(10))
    sent.generated = 4
    place = Place(sent, SchedulerFlags())
    place.enter_queue(0)
    found, node = pool.match(place.ids, 13, b"")
    pool.lock(place, found, node)
    pool.take(14)
    place.computed_tokens = 14
    pool.publish(place, 14)
    assert (pool.private_tokens, pool.used_tokens) == (0, 14)
    pool.release(place, keep=False)
    assert (pool.used_tokens, pool.evictable_tokens) == (0, 14)
    assert [pool.cache.evict(1), pool.cache.evict(1)] == [4, 10]


def test_no_more_is_taken_than_there_is() -> None:
    """Whoever takes has asked before."""
    pool = KvPool(10, 4, cached=True)
    assert pool.size_tokens == 8
    pool.take(8)
    assert not pool.make_free(1)
    with pytest.raises(RuntimeError):
        pool.take(4)

"""Nearest rank, by hand."""

from backend.loadtest.percentiles import distribution, nearest_rank, percentiles


def test_nearest_rank_of_twenty() -> None:
    """p95 of 1..20 is the 19th, p99 the 20th, p50 the 10th."""
    values = [float(value) for value in range(1, 21)]
    found = percentiles(reversed(values))
    assert found is not None
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms) == (10, 19, 20, 20)
    assert found.mean_ms == 10.5
    assert found.count == 20


def test_of_one_value_all_are_it() -> None:
    """And of none there is nothing."""
    assert nearest_rank([3.0], 1) == nearest_rank([3.0], 99) == 3.0
    assert percentiles([]) is None


def test_a_distribution_ends_with_the_greatest() -> None:
    """Each point is what that share of the values does not exceed."""
    assert distribution([1.0, 2.0, 3.0, 4.0], 4) == [1, 2, 3, 4]
    assert distribution([1.0, 2.0, 3.0, 4.0], 8) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert distribution([]) == []

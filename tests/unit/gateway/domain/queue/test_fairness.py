"""Virtual token counters: who is charged what, who is lifted, what is forgotten."""

from gateway.domain.queue.fairness import Counters, weighted_tokens


def test_output_weighs_twice() -> None:
    """Tokens out cost more than tokens in."""
    assert weighted_tokens(uncached_prompt_tokens=100, output_tokens=30) == 160


def test_who_begins_to_wait_is_lifted_to_the_least_that_waits() -> None:
    """Not to the least that runs: that one may have asked for nothing for long."""
    counters = Counters()
    counters.wait("runs")
    counters.rest("runs")
    counters.wait("a")
    counters.charge("a", 50, 1)
    counters.wait("new")
    assert counters.active == {"runs": 0, "a": 50_000, "new": 50_000}
    counters.wait("runs")
    assert counters.active["runs"] == 50_000


def test_where_nobody_waits_the_last_that_waited_counts() -> None:
    """An empty queue gives no credit to who comes first."""
    counters = Counters()
    counters.wait("a")
    counters.charge("a", 7, 2)
    counters.rest("a")
    counters.deactivate("a")
    counters.wait("b")
    assert counters.active == {"b": 3_500}


def test_who_was_served_more_is_remembered_only_while_it_matters() -> None:
    """Its debt is kept while others that wait have less, and forgotten when they reach it."""
    counters = Counters()
    counters.wait("a")
    counters.wait("b")
    counters.charge("a", 9, 1)
    counters.rest("a")
    counters.deactivate("a")
    assert counters.idle == {"a": 9_000}
    counters.charge("b", 9, 1)
    assert counters.idle == {}


def test_an_estimate_is_corrected_to_the_unit() -> None:
    """A charge that is undone leaves nothing, at a weight that does not divide it too."""
    counters = Counters()
    counters.wait("a")
    counters.charge("a", 100, 3)
    counters.correct("a", 100, 0, 3)
    assert counters.active == {"a": 0}
    counters.charge("a", 100, 1)
    counters.correct("a", 100, 160, 1)
    assert counters.active == {"a": 160_000}


def test_who_comes_back_is_not_lifted_while_it_runs() -> None:
    """A place that was taken back costs no turn; unknown tenants are lifted all the same."""
    counters = Counters()
    counters.wait("a")
    counters.rest("a")
    counters.wait("b")
    counters.charge("b", 5, 1)
    counters.wait("a", came_back=True)
    counters.wait("c", came_back=True)
    assert (counters.active["a"], counters.active["c"]) == (0, 0)
    other = Counters()
    other.wait("b")
    other.charge("b", 5, 1)
    other.wait("c", came_back=True)
    assert other.active["c"] == 5_000

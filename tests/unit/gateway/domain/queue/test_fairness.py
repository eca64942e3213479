"""Virtual token counters: who is charged what, who is lifted, what is forgotten."""

from gateway.domain.queue.fairness import Counters, weighted_tokens


def stand(counters: Counters) -> dict[str, int]:
    """Where each that is active stands."""
    return {name: counters.of(name) for name in counters.active}


def in_turn(counters: Counters) -> list[str]:
    """Those that wait, whose turn it is first."""
    return sorted(counters.waits, key=counters.order)


def busy(**charged: int) -> Counters:
    """These wait, and were charged so much."""
    counters = Counters()
    for name in charged:
        counters.wait(name)
    for name, cost in charged.items():
        counters.charge(name, cost, 1)
    return counters


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
    assert stand(counters) == {"runs": 0, "a": 50_000, "new": 50_000}
    counters.wait("runs")
    assert stand(counters)["runs"] == 50_000


def test_where_nobody_waits_the_last_that_waited_counts() -> None:
    """An empty queue gives no credit to who comes first."""
    counters = Counters()
    counters.wait("a")
    counters.charge("a", 7, 2)
    counters.rest("a")
    counters.deactivate("a")
    counters.wait("b")
    assert stand(counters) == {"b": 3_500}
    counters.charge("b", 1, 1)
    assert counters.active == {"b": 4_500}


def test_who_was_served_more_is_remembered_only_while_it_matters() -> None:
    """Its debt is kept while others that wait have less, and forgotten when they are past it."""
    counters = Counters()
    counters.wait("a")
    counters.wait("b")
    counters.charge("a", 9, 1)
    counters.rest("a")
    counters.correct("a", 9, 9, 1)
    counters.deactivate("a")
    assert counters.idle == {"a": 9_000}
    counters.charge("b", 9, 1)
    counters.correct("b", 9, 9, 1)
    assert counters.idle == {"a": 9_000}
    counters.charge("b", 1, 1)
    counters.correct("b", 1, 1, 1)
    assert counters.idle == {}


def test_who_was_served_more_than_others_may_have_been_is_remembered() -> None:
    """What others were charged too much is taken back: until then they may be the least served."""
    counters = busy(b=0)
    counters.wait("a")
    counters.charge("a", 9, 1)
    counters.rest("a")
    counters.charge("b", 50, 1)
    counters.correct("a", 9, 9, 1)
    counters.deactivate("a")
    assert counters.idle == {"a": 9_000}
    counters.correct("b", 50, 3, 1)
    counters.wait("a")
    assert in_turn(counters) == ["b", "a"]
    assert counters.expected == 0


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
    assert stand(other)["c"] == 5_000


def test_newcomers_go_first_whoever_came_first() -> None:
    """Whatever their names, before those that stand no lower; one that leaves and comes again is
    the last of them."""
    counters = busy(m=50, a=60)
    for name in ("z", "b"):
        counters.wait(name)
    assert in_turn(counters) == ["z", "b", "m", "a"]
    counters.rest("z")
    counters.deactivate("z")
    counters.wait("z")
    assert in_turn(counters) == ["b", "z", "m", "a"]


def test_a_newcomer_stands_where_the_lowest_was_since_and_is_charged_from_there() -> None:
    """Corrections of others pull it down, and nothing pulls it up."""
    counters = busy(a=100, b=100)
    counters.wait("new")
    counters.correct("a", 30, 0, 1)
    assert in_turn(counters) == ["new", "a", "b"]
    counters.charge("a", 90, 1)
    assert stand(counters)["new"] == 70_000
    counters.charge("new", 10, 1)
    assert stand(counters) == {"a": 160_000, "b": 100_000, "new": 80_000}
    assert counters.newcomers == []


def test_a_newcomer_is_charged_from_its_own_where_that_is_higher() -> None:
    """Once served, it gains nothing by others that were charged too much when it came again."""
    counters = busy(a=100, b=100)
    counters.wait("new")
    counters.charge("new", 80, 1)
    counters.rest("new")
    counters.charge("a", 900, 1)
    counters.charge("b", 900, 1)
    counters.wait("new")
    counters.correct("a", 900, 0, 1)
    counters.correct("new", 80, 60, 1)
    assert in_turn(counters)[0] == "new"
    counters.charge("new", 5, 1)
    assert counters.active["new"] == (100 + 60 + 5) * 1_000


def test_who_stands_where_others_do_was_a_newcomer_there() -> None:
    """Also one that was charged nothing: it goes first once, until the lowest was served."""
    counters = busy(a=100)
    for _ in range(2):
        counters.wait("new")
        first = in_turn(counters)[0]
        counters.charge("new", 0, 1)
        counters.rest("new")
        counters.deactivate("new")
    assert first == "a"
    counters.charge("a", 1, 1)
    counters.wait("new")
    assert in_turn(counters)[0] == "new"


def test_who_gives_its_place_back_goes_before_newcomers() -> None:
    """Its turn was before theirs, and they are not pulled down to it."""
    counters = Counters()
    counters.wait("b")
    counters.charge("b", 100, 1)
    counters.rest("b")
    counters.wait("new")
    counters.wait("b", came_back=True)
    counters.correct("b", 100, 0, 1, came_back=True)
    assert in_turn(counters) == ["b", "new"]
    assert stand(counters) == {"b": 0, "new": 100_000}

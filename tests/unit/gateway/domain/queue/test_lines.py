"""Who waits in a band, in which order."""

from queue_examples import HOUR_MS, batch, ticket

from gateway.domain.queue.lines import OF_A_TENANT, Line


def names(line: Line) -> list[str]:
    """The candidates, in order."""
    return [each.id for each in line.candidates()]


def test_least_served_tenant_first_then_earliest_deadline() -> None:
    """Names break ties."""
    line = Line()
    line.add(ticket("a2", "a", deadline_ms=9))
    line.add(ticket("a1", "a", deadline_ms=8))
    line.add(ticket("b1", "b", deadline_ms=1))
    assert names(line) == ["a1", "a2", "b1"]
    line.grant(line.waiting["a"][0])
    assert names(line) == ["b1", "a2"]
    assert line.running == {"a": 1}


def test_of_a_tenant_only_so_many_are_looked_at() -> None:
    """A step stays bounded, and the next tenant has its turn."""
    line = Line()
    for index in range(OF_A_TENANT + 5):
        line.add(ticket(f"a{index:02}", "a"))
    line.add(ticket("b", "b"))
    assert len(names(line)) == OF_A_TENANT + 1
    assert names(line)[-1] == "b"


def test_promoted_is_batch_whose_time_has_come() -> None:
    """The earliest first; interactive is never promoted."""
    line = Line()
    for name, promote_ms in (("late", 30), ("first", 10), ("second", 20)):
        line.add(batch(name, promote_ms=promote_ms))
    line.add(ticket("i", promote_ms=0))
    assert [each.id for each in line.promoted(20)] == ["first", "second"]


def test_a_tenant_is_active_while_it_waits_or_runs() -> None:
    """And no longer."""
    line = Line()
    one, other = ticket("1"), ticket("2")
    line.add(one)
    line.add(other)
    line.grant(one)
    line.remove(other)
    assert (set(line.counters.active), line.counters.waits) == ({"a"}, set())
    line.end(one, 4)
    assert (line.counters.active, line.running, len(line)) == ({}, {}, 0)


def test_a_resumed_run_is_charged_and_corrected() -> None:
    """A store that forgot the charge gives none back that was never made."""
    line = Line()
    one = ticket("1", cost=100)
    line.resume(one)
    assert line.counters.active == {"a": 100_000}
    line.add(ticket("2", deadline_ms=HOUR_MS))
    line.end(one, 40)
    assert line.counters.active == {"a": 40_000}


def test_ahead_counts_own_earlier_ones_and_others_until_they_are_level() -> None:
    """Two of its own of twenty each; the other tenant has more than that."""
    line = Line()
    for index in range(3):
        line.add(ticket(f"a{index}", "a", cost=20, deadline_ms=index))
    for index in range(10):
        line.add(ticket(f"b{index}", "b", cost=20, deadline_ms=index))
    assert line.own_ahead(line.waiting["a"][2]) == 2
    assert line.ahead(line.waiting["a"][2]) == 40 + 40

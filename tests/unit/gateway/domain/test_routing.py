from tenant_examples import a_worker

from gateway.domain.engine_facts import NOTHING_KNOWN, EngineFacts, Need
from gateway.domain.routing import eligible, facts_of, pick
from gateway.domain.worker import WorkerView


def a_view(
    name: str,
    *,
    healthy: bool = True,
    draining: bool = False,
    in_flight: int = 0,
    running: int | None = None,
    waiting: int | None = None,
    engine: EngineFacts = NOTHING_KNOWN,
) -> WorkerView:
    worker = a_worker(name, draining=draining)
    return WorkerView(worker, healthy, in_flight, running=running, waiting=waiting, engine=engine)


def names(views: list[WorkerView]) -> list[str]:
    return [view.worker.id for view in views]


def test_only_healthy_untried_workers_that_do_not_drain_are_eligible() -> None:
    """Health, drain and an earlier try each exclude a worker on their own."""
    views = [
        a_view("ill", healthy=False),
        a_view("drains", draining=True),
        a_view("a"),
        a_view("b"),
    ]
    assert names(eligible(views)) == ["a", "b"]
    assert names(eligible(views, excluded=["a"])) == ["b"]


def test_nobody_to_pick_is_none() -> None:
    """No worker, or all excluded: None, never a worker that may not take it."""
    assert pick([]) is None
    assert pick([a_view("a")], excluded=["a"]) is None


def test_the_least_loaded_is_picked() -> None:
    """Load is what the engine reports, waiting included, or what this gateway has open there."""
    busy = a_view("a", running=2, waiting=3)
    own = a_view("b", in_flight=4)
    assert names([found for found in [pick([busy, own])] if found]) == ["b"]


def test_a_stale_report_does_not_hide_own_streams() -> None:
    """What was dispatched since the last report counts: 3 open beat a report of 0."""
    just_sent = a_view("a", in_flight=3, running=0, waiting=0)
    other = a_view("b", in_flight=0, running=1, waiting=0)
    picked = pick([just_sent, other])
    assert picked is not None
    assert picked.worker.id == "b"


def test_ties_go_by_name() -> None:
    """The same load: always the same worker, in whatever order they come."""
    views = [a_view("b"), a_view("a")]
    assert pick(views) == pick(views[::-1]) == views[1]


def test_a_worker_that_cannot_hold_it_is_not_picked() -> None:
    """Q28: 90 and 20 go to the pool of 1,000, however loaded, never to that of 100, which would cut
    them down; a worker that says nothing of itself may take it."""
    small = a_view("small", engine=EngineFacts(pool_tokens=100))
    large = a_view("large", in_flight=9, engine=EngineFacts(pool_tokens=1000))
    need = Need(prompt_tokens=90, max_tokens=20)
    assert names(eligible([small, large], need=need)) == ["large"]
    assert pick([small, large], need=need) is large
    assert pick([small], need=need) is None
    assert pick([small, a_view("silent")], need=need) is not None


def test_facts_of_a_worker_that_is_gone_are_none() -> None:
    """It may leave the directory while its stream is being opened."""
    known = a_view("a", engine=EngineFacts(version="1"))
    assert facts_of([known], "a").version == "1"
    assert facts_of([known], "b") is NOTHING_KNOWN

from tenant_examples import a_worker

from gateway.domain.routing import eligible, pick
from gateway.domain.worker import WorkerView


def a_view(
    name: str,
    *,
    healthy: bool = True,
    draining: bool = False,
    in_flight: int = 0,
    running: int | None = None,
    waiting: int | None = None,
) -> WorkerView:
    worker = a_worker(name, draining=draining)
    return WorkerView(worker, healthy, in_flight, running=running, waiting=waiting)


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

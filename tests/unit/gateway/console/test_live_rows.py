"""The live page: who comes first, sums, and what was furthest from its target."""

from typing import Any

from gateway.console.live_rows import (
    fallback_use,
    furthest,
    limit_permille,
    pool_rows,
    queue_sums,
    tenants_shown,
)
from gateway.console.worker_rows import WorkerState


def tenant(tenant_id: str, **figures: Any) -> dict[str, Any]:
    """One that uses nothing and has no limit but for what is given."""
    return {
        "id": tenant_id,
        "name": tenant_id.title(),
        "sequences_running": 0,
        "max_sequences": None,
        "tokens_last_minute": 0,
        "tpm": None,
        "requests_last_minute": 0,
        "rpm": None,
        "sequences_queued": 0,
        "max_queued": 64,
        **figures,
    }


def test_who_is_nearest_to_any_limit_comes_first() -> None:
    """Whatever the limit is of; without one, who waits most, then who was charged most."""
    tenants = [
        tenant("charged", tokens_last_minute=9),
        tenant("half", sequences_running=5, max_sequences=10),
        tenant("closed", max_sequences=0, sequences_queued=1),
        tenant("tokens", tokens_last_minute=900, tpm=1_000),
        tenant("over", requests_last_minute=30, rpm=20),
        tenant("waits", sequences_queued=6),
        tenant("idle"),
    ]
    shown = [row["id"] for row in tenants_shown(tenants).rows]
    assert shown == ["over", "closed", "tokens", "half", "waits", "charged", "idle"]
    assert limit_permille(tenant("u", sequences_queued=None, max_queued=1)) == 0


def test_a_limit_of_nothing_is_near_only_to_who_uses_or_waits() -> None:
    """0 of 0 is nobody's hurry: one that runs 3 of 4 comes first."""
    closed = tenant("closed", max_sequences=0, tpm=0, rpm=0, max_queued=0)
    busy = tenant("busy", sequences_running=3, max_sequences=4)
    assert [row["id"] for row in tenants_shown([closed, busy]).rows] == ["busy", "closed"]
    assert limit_permille(closed) == 0
    assert limit_permille(tenant("still", requests_last_minute=1, rpm=0)) == 1_000
    assert limit_permille(tenant("held", sequences_queued=1, max_sequences=0)) == 1_000
    assert limit_permille(tenant("runs", sequences_running=1, max_queued=0)) == 0


def test_a_search_looks_at_ids_and_names_and_no_more_than_some_are_shown() -> None:
    """The counts say how many there are besides."""
    tenants = [tenant(f"t{number}", name=f"Acme {number}") for number in range(60)]
    whole = tenants_shown(tenants)
    assert (len(whole.rows), whole.matching, whole.active) == (50, 60, 60)
    found = tenants_shown(tenants, "aCME 5")
    assert (len(found.rows), found.matching, found.active) == (11, 11, 60)
    assert [row["id"] for row in tenants_shown(tenants, "T59").rows] == ["t59"]
    assert tenants_shown(tenants, "nobody").rows == []


def pool(model: str, request_class: str | None = None, **figures: Any) -> dict[str, Any]:
    """One in which nothing waits."""
    each = {"requests": 0}
    return {
        "model": model,
        "class": request_class,
        "queued_tokens": {"interactive": 0, "batch": 0},
        "queue": {"interactive": each, "batch": each},
        "parked": 0,
        "sequences_running": 0,
        **figures,
    }


UNTOLD = {"queued_tokens": None, "queue": None, "parked": None, "sequences_running": None}


def worker(name: str, **fields: Any) -> dict[str, Any]:
    """A healthy one with ten places."""
    return {
        "id": name,
        "model": "m",
        "class": None,
        "draining": False,
        "state": WorkerState.HEALTHY,
        "places": {"sequences_max": 10},
        **fields,
    }


def test_a_sum_over_a_queue_that_is_not_known_is_not_known() -> None:
    """It is no smaller sum."""
    full = pool(
        "m",
        queued_tokens={"interactive": 300, "batch": 7},
        queue={"interactive": {"requests": 2}, "batch": {"requests": 1}},
    )
    assert queue_sums([full, full]) == {
        "interactive": {"tokens": 600, "requests": 4},
        "batch": {"tokens": 14, "requests": 2},
    }
    nothing = {"tokens": None, "requests": None}
    assert queue_sums([full, pool("n", **UNTOLD)]) == {"interactive": nothing, "batch": nothing}


def test_places_are_those_of_workers_that_serve() -> None:
    """Not of one that drains or is away; without a ceiling the whole has none."""
    workers = [
        worker("a"),
        worker("b", draining=True),
        worker("c", state=WorkerState.UNREACHABLE),
        worker("d", **{"class": "batch"}),
    ]
    (row,) = pool_rows([pool("m")], workers)
    assert (row["serving"], row["workers"], row["sequences_max"]) == (1, 3, 10)
    for places in (None, {"sequences_max": None}):
        (row,) = pool_rows([pool("m")], [*workers, worker("e", places=places)])
        assert (row["serving"], row["sequences_max"]) == (2, None)
    (row,) = pool_rows([pool("m")], [])
    assert (row["serving"], row["workers"], row["sequences_max"]) == (0, 0, None)


def test_a_pool_that_is_nobodys_is_left_out_only_where_others_serve_the_model() -> None:
    """And never while something waits in it, or it is not known."""
    batch = worker("a", **{"class": "batch"})
    pools = [pool("m"), pool("m", "batch")]
    assert [row["class"] for row in pool_rows(pools, [batch])] == ["batch"]
    assert len(pool_rows(pools, [])) == 2
    waits = {"interactive": {"requests": 1}, "batch": {"requests": 0}}
    for other in (pool("m", queue=waits), pool("m", parked=1), pool("m", **UNTOLD)):
        assert len(pool_rows([other, pools[1]], [batch])) == 2


def latency(model: str, request_class: str, ttft_ms: float | None) -> dict[str, Any]:
    """Against a target of 800 ms."""
    return {
        "model": model,
        "class": request_class,
        "last_minute": {"ttft_p95_ms": ttft_ms, "ttft_count": 3},
        "ttft_target_ms": 800,
    }


def test_the_worst_is_of_interactive_models_that_answered() -> None:
    """Batch has targets of its own, and who did not answer has no figure."""
    views = [
        latency("a", "interactive", 400.0),
        latency("b", "interactive", 900.0),
        latency("c", "interactive", None),
        latency("a", "batch", 50_000.0),
    ]
    assert furthest(views, "ttft") == {
        "model": "b",
        "p95_ms": 900.0,
        "count": 3,
        "target_ms": 800,
    }
    assert furthest([views[2]], "ttft") is None
    assert furthest(None, "ttft") is None


def test_the_fallback_is_in_use_since_the_first_provider_is() -> None:
    """Streams are summed, also as not known."""
    near = {"name": "near", "running": 2, "in_use_since": "2026-11-30T10:00:05Z"}
    far = {"name": "far", "running": 1, "in_use_since": "2026-11-30T10:00:01Z"}
    idle = {"name": "idle", "running": 0, "in_use_since": None}
    assert fallback_use([near, far, idle]) == (3, "2026-11-30T10:00:01Z", ["near", "far"])
    assert fallback_use([idle]) == (0, None, [])
    assert fallback_use([{**idle, "running": None}, near]).running is None

"""How workers stand on the pages, and what is left of their figures."""

from typing import Any

from gateway.console.worker_rows import (
    WorkerState,
    is_last,
    unreachable,
    unserved,
    worker_rows,
)

TOLD = {"running": 3, "waiting": 1, "kv_used_tokens": 40, "kv_total_tokens": 100}


def view(name: str, **fields: Any) -> dict[str, Any]:
    """A healthy worker of the model `m`, as the live view has it."""
    return {
        "id": name,
        "model": "m",
        "class": None,
        "healthy": True,
        "draining": False,
        "load_age_ms": 300,
        **TOLD,
        **fields,
    }


def test_what_an_engine_told_before_it_went_away_is_not_known_any_more() -> None:
    """It is neither what it was nor 0; one that never answered may be starting."""
    away = view("b", healthy=False)
    new = view("a", healthy=False, load_age_ms=None)
    rows = worker_rows([away, view("c"), new])
    assert [(row["id"], row["state"]) for row in rows] == [
        ("a", WorkerState.STARTING),
        ("b", WorkerState.UNREACHABLE),
        ("c", WorkerState.HEALTHY),
    ]
    for row in rows[:2]:
        assert {row[name] for name in TOLD} == {None}
    assert {name: rows[2][name] for name in TOLD} == TOLD
    assert unreachable(rows) == ["b"]


def test_what_nobody_serves_is_named() -> None:
    """A model without a worker, and a class whose own workers are away."""
    rows = worker_rows(
        [
            view("a"),
            view("b", **{"class": "batch"}, healthy=False),
            view("c", model="n", healthy=False),
            view("d", model="n", healthy=True),
        ]
    )
    assert unserved(["m", "n", "o"], rows) == ["o", "m (batch)"]
    assert unserved(["m"], worker_rows([view("a", healthy=False)])) == ["m"]
    assert unserved([], []) == []
    assert unserved(["m", "n", "o"], rows, {"m", "o"}) == ["m (batch)"]


def test_the_last_that_takes_requests_of_its_pool() -> None:
    """Whoever drains, is away or serves another class takes none in its place."""
    row, *others = worker_rows(
        [
            view("a"),
            view("b", draining=True),
            view("c", healthy=False),
            view("d", **{"class": "batch"}),
            view("e", model="n"),
        ]
    )
    assert is_last(row, [row, *others])
    assert not is_last(row, [row, *others, *worker_rows([view("f")])])

"""A request's life as steps on one line of time, from its arrival on. Pure.

The steps are those that its view tells of (`gateway/http/request_views.py`); what is not known has
no step.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.console.request_words import outcome_text

_SHORTEST_PERMILLE = 4
"""A step is drawn at least so wide: what took no time has happened too."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: from `at_ms` after the arrival, and for how long, so far where it goes on;
    `lasted_ms` None is an instant."""

    name: str
    note: str
    at_ms: int
    lasted_ms: int | None
    kind: str
    """`wait`, `work`, `lost` (work that came to nothing) or `mark` (an instant)."""
    goes_on: bool = False
    bar: tuple[int, int] = (0, 0)
    """Where its bar begins and how wide it is, in permille of the whole."""


def timeline_of(life: Mapping[str, Any], now_ms: int) -> list[Step]:
    """The steps of a life in the order in which they began."""
    arrived_ms = _ms(life["arrived_at"])
    ended_ms = None if life["ended_at"] is None else _ms(life["ended_at"]) - arrived_ms
    until_ms = max(now_ms - arrived_ms, 0) if ended_ms is None else ended_ms
    steps = sorted(_steps(life, arrived_ms, ended_ms, until_ms), key=lambda step: step.at_ms)
    furthest_ms = max([until_ms, *(step.at_ms + (step.lasted_ms or 0) for step in steps)])
    return [_drawn(step, max(furthest_ms, 1)) for step in steps]


def _steps(
    life: Mapping[str, Any], arrived_ms: int, ended_ms: int | None, until_ms: int
) -> Iterator[Step]:
    queued_ms: int = life["queued_ms"]
    yield Step(name="Arrived", note="", at_ms=0, lasted_ms=None, kind="mark")
    waited = "was free at once" if not queued_ms else "waited for its turn"
    yield Step(name="Queue", note=waited, at_ms=0, lasted_ms=queued_ms, kind="wait")
    attempts = life["attempts"]
    if attempts is None:
        yield from _whole_work(life, queued_ms, until_ms)
    else:
        for attempt in attempts:
            yield _attempt(attempt, arrived_ms, several=len(attempts) > 1)
        if not attempts and ended_ms is not None:
            yield Step(
                name="No attempt", note="nothing was sent to a worker", at_ms=queued_ms,
                lasted_ms=None, kind="mark",
            )  # fmt: skip
    if life["first_token_at"] is not None:
        at_ms = _ms(life["first_token_at"]) - arrived_ms
        yield Step(
            name="First token", note="reached the gateway", at_ms=at_ms, lasted_ms=None, kind="mark"
        )
    if ended_ms is not None:
        note = outcome_text(life["outcome"])
        yield Step(name="End", note=note, at_ms=ended_ms, lasted_ms=None, kind="mark")


def _whole_work(life: Mapping[str, Any], queued_ms: int, until_ms: int) -> Iterator[Step]:
    goes_on = life["state"] == "running"
    if life["state"] == "lost":
        return
    yield Step(
        name="Running" if goes_on else "Ran",
        note="",
        at_ms=queued_ms,
        lasted_ms=max(until_ms - queued_ms, 0),
        kind="work",
        goes_on=goes_on,
    )


def _attempt(attempt: Mapping[str, Any], arrived_ms: int, *, several: bool) -> Step:
    began_ms, over_ms = _ms(attempt["began_at"]), _ms(attempt["ended_at"])
    worker, provider = attempt["worker_id"], attempt["provider"]
    where = f"on {worker}"
    if provider != "self":
        hosted = f"hosted at {provider.removeprefix('hosted:')}"
        where = hosted if worker == provider else f"{where}, {hosted}"
    choice = f", choice {attempt['choice']}" if attempt["choice"] else ""
    tokens = attempt["output_tokens"]
    said = f"{outcome_text(attempt['outcome'])}; {tokens:,} token{'' if tokens == 1 else 's'} out"
    return Step(
        name=f"Attempt {attempt['attempt']}{choice}" if several else "Attempt",
        note=f"{where}: {said}",
        at_ms=began_ms - arrived_ms,
        lasted_ms=max(over_ms - began_ms, 0),
        kind="work" if attempt["outcome"] in ("completed", "client_cancelled") else "lost",
    )


def _drawn(step: Step, whole_ms: int) -> Step:
    width = max(_SHORTEST_PERMILLE, (step.lasted_ms or 0) * 1_000 // whole_ms)
    begin = min(max(step.at_ms, 0) * 1_000 // whole_ms, 1_000 - _SHORTEST_PERMILLE)
    return Step(**{**step.__dict__, "bar": (begin, min(width, 1_000 - begin))})


def _ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)

"""A request's life as steps on a line of time."""

from typing import Any

from billing.domain.usage_record import Outcome, UsageFlag, UsageSource
from gateway.console.request_timeline import timeline_of
from gateway.console.request_words import FLAGS, OUTCOMES, SOURCES, flag_text, outcome_text
from gateway.domain.instants import shown

ARRIVED_MS = 1_770_000_000_000


def at(after_ms: int) -> str | None:
    """An instant after the arrival."""
    return shown(ARRIVED_MS + after_ms)


def attempt(number: int, began_ms: int, over_ms: int, **changes: Any) -> dict[str, Any]:
    """A stream."""
    usual = {
        "attempt": number,
        "choice": 0,
        "worker_id": "w-1",
        "provider": "self",
        "began_at": at(began_ms),
        "ended_at": at(over_ms),
        "outcome": "completed",
        "output_tokens": 20,
    }
    return {**usual, **changes}


def a_life(**changes: Any) -> dict[str, Any]:
    """One that ended after a second."""
    usual = {
        "state": "ended",
        "arrived_at": at(0),
        "queued_ms": 100,
        "first_token_at": at(300),
        "ended_at": at(1_000),
        "outcome": "completed",
        "attempts": [attempt(1, 120, 1_000)],
    }
    return {**usual, **changes}


def test_each_step_stands_where_it_happened() -> None:
    """In the order in which they began, drawn in their part of the whole."""
    steps = timeline_of(a_life(), ARRIVED_MS + 99_000)
    assert [(step.name, step.at_ms, step.lasted_ms) for step in steps] == [
        ("Arrived", 0, None),
        ("Queue", 0, 100),
        ("Attempt", 120, 880),
        ("First token", 300, None),
        ("End", 1_000, None),
    ]
    assert [step.bar for step in steps] == [
        (0, 4), (0, 100), (120, 880), (300, 4), (996, 4),
    ]  # fmt: skip
    assert "w-1" in steps[2].note


def test_an_attempt_that_failed_is_work_that_was_lost() -> None:
    """And the next one, at a provider, says where."""
    attempts = [
        attempt(1, 120, 400, outcome="worker_failed", output_tokens=1),
        attempt(2, 450, 1_000, worker_id="big", provider="hosted:acme-ai"),
        attempt(3, 1_000, 1_000, worker_id="hosted:near", provider="hosted:near"),
    ]
    steps = [step for step in timeline_of(a_life(attempts=attempts), 0) if "Attempt" in step.name]
    assert [(step.name, step.kind) for step in steps] == [
        ("Attempt 1", "lost"),
        ("Attempt 2", "work"),
        ("Attempt 3", "work"),
    ]
    assert steps[0].note == "on w-1: the worker failed; 1 token out"
    assert "on big, hosted at acme-ai" in steps[1].note
    assert steps[2].note == "hosted at near: completed; 20 tokens out"


def test_a_tenant_sees_the_work_and_not_where() -> None:
    """Its view has no attempts."""
    steps = timeline_of(a_life(attempts=None), 0)
    assert [(step.name, step.at_ms, step.lasted_ms) for step in steps if step.kind == "work"] == [
        ("Ran", 100, 900)
    ]


def test_what_runs_goes_on_to_now() -> None:
    """Nobody knows an end; of a lost one not even that it runs."""
    running = a_life(
        state="running", attempts=None, ended_at=None, first_token_at=None, outcome=None
    )
    steps = timeline_of(running, ARRIVED_MS + 500)
    assert [(step.name, step.bar) for step in steps] == [
        ("Arrived", (0, 4)), ("Queue", (0, 200)), ("Running", (200, 800)),
    ]  # fmt: skip
    assert (steps[-1].lasted_ms, steps[-1].goes_on) == (400, True)
    lost = timeline_of({**running, "state": "lost"}, ARRIVED_MS + 500)
    assert [step.name for step in lost] == ["Arrived", "Queue"]


def test_a_life_of_no_time_is_drawn() -> None:
    """Refused at once, with a clock that was set back meanwhile."""
    none = a_life(ended_at=at(0), first_token_at=None, queued_ms=0, attempts=[])
    steps = timeline_of(none, ARRIVED_MS - 5)
    assert [step.name for step in steps] == ["Arrived", "Queue", "No attempt", "End"]
    for step in timeline_of(a_life(attempts=[attempt(1, -50, -20)]), 0):
        begin, width = step.bar
        assert 0 <= begin <= begin + width <= 1_000


def test_every_code_has_words() -> None:
    """Of all that a record may carry; and one that is not known stays what it is."""
    for words, codes in ((OUTCOMES, Outcome), (SOURCES, UsageSource), (FLAGS, UsageFlag)):
        assert set(words) == set(codes)
        assert all(text and "_" not in text for text in words.values())
    assert outcome_text("newer_code") == "newer_code"
    assert flag_text("newer_flag") == "newer_flag"

"""A schedule on virtual replicas: who goes first, where to, and when it is given up."""

from collections.abc import Mapping

import pytest

from backend.loadtest.plan import PlannedRequest, Segment, TrafficClass, Workload
from backend.loadtest.run import Outcome, Run
from backend.loadtest.virtual_target import run_virtual
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile, StepTimes
from backend.simulated.replica import Replica

STEP = StepTimes(a0_ms=10, a1_ms=0, a2_ms=0, b0_ms=5, b1_ms=0.5, b2_ms=0)
PROFILE = Profile("round", STEP, front_end_ms=30, kv_tokens=1000, context_tokens=1000, source="")
ONE_AT_A_TIME: Mapping[str, object] = {"max_total_tokens": 1000, "max_running_requests": 1}


def planned(
    number: int, send_at_ms: float, output_tokens: int = 5, of: TrafficClass = "interactive"
) -> PlannedRequest:
    """One that shares nothing."""
    return PlannedRequest(
        number, send_at_ms, "t00", of, (Segment(f"own{number}", 10),), output_tokens
    )


def ran(requests: list[PlannedRequest], flags: Mapping[str, object], **options: object) -> Run:
    """The run."""
    workload = Workload("made up", "0", 0, "as said", tuple(requests), 1_000.0, 0.0)
    return run_virtual(workload, PROFILE, SchedulerFlags(**flags), **options)  # type: ignore[arg-type] # by name


@pytest.mark.timeout(20)
def test_each_is_given_up_its_timeout_after_its_own_time() -> None:
    """In its replica, too: who waited behind it gets its turn. The run ends."""
    left: list[int] = []

    def look(replicas: list[Replica]) -> None:
        left.append(replicas[0].load().running + replicas[0].load().waiting)

    run = ran(
        [planned(0, 0, 900), planned(1, 100, 3), planned(2, 110, 900)],
        ONE_AT_A_TIME,
        timeout_ms=500.0,
        look=look,
    )
    first, second, third = run.outcomes
    assert (first.end, first.ended_at_ms, first.status) == ("timeout", 500, 200)
    assert first.last_token_at_ms is not None
    assert first.last_token_at_ms <= 500
    assert (second.end, second.output_tokens) == ("ok", 3)
    assert second.ended_at_ms is not None
    assert 500 < second.ended_at_ms < 600
    assert (third.end, third.ended_at_ms) == ("timeout", 610)
    assert left == [0]


@pytest.mark.timeout(20)
def test_one_that_is_given_up_in_the_front_end_never_began() -> None:
    """No status, no token."""
    (outcome,) = ran([planned(0, 0)], ONE_AT_A_TIME, timeout_ms=20.0).outcomes
    assert (outcome.end, outcome.ended_at_ms, outcome.status) == ("timeout", 20, None)
    assert outcome.first_token_at_ms is None


@pytest.mark.parametrize("low_first", [False, True])
def test_interactive_goes_before_batch_under_priorities(low_first: bool) -> None:
    """Whichever values the flag puts first."""
    flags = {
        **ONE_AT_A_TIME,
        "enable_priority_scheduling": True,
        "schedule_low_priority_values_first": low_first,
    }
    requests = [planned(0, 0, 50), planned(1, 10, of="batch"), planned(2, 20)]
    outcomes = ran(requests, flags).outcomes
    assert began(outcomes[0]) < began(outcomes[2]) < began(outcomes[1])


def test_without_priorities_the_first_goes_first() -> None:
    """Of whatever class."""
    requests = [planned(0, 0, 50), planned(1, 10, of="batch"), planned(2, 20)]
    outcomes = ran(requests, ONE_AT_A_TIME).outcomes
    assert began(outcomes[1]) < began(outcomes[2])


def began(outcome: Outcome) -> float:
    """When its first token came."""
    assert outcome.first_token_at_ms is not None
    return outcome.first_token_at_ms


def test_a_request_in_the_front_end_is_a_request_of_its_replica() -> None:
    """Four within its 30 ms go to four replicas; one that has ended makes room again."""
    requests = [*(planned(number, number * 5.0) for number in range(4)), planned(4, 500.0)]
    run = ran(requests, {"max_total_tokens": 1000}, replicas=4)
    assert [outcome.worker for outcome in run.outcomes] == [
        *(f"simulated-{number}" for number in range(4)),
        "simulated-0",
    ]

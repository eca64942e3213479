"""Replicas on the virtual clock: exact times, and the same ones every time."""

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile, StepTimes
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.virtual import VirtualReplicas

STEP = StepTimes(a0_ms=10, a1_ms=1, a2_ms=0, b0_ms=5, b1_ms=0.5, b2_ms=0)
PROFILE = Profile("round", STEP, front_end_ms=30, kv_tokens=1000, context_tokens=1000, source="")


class Log:
    """All that is told, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, object, float]] = []

    def generated(self, request: SimulatedRequest, now_ms: float) -> None:
        """A token."""
        self.lines.append((request.rid, request.generated, now_ms))

    def ended(self, request: SimulatedRequest, reason: EndReason | None, now_ms: float) -> None:
        """An end."""
        self.lines.append((request.rid, reason, now_ms))


def a_request(rid: str, prompt_tokens: int, output_tokens: int) -> SimulatedRequest:
    """One that shares nothing."""
    mark = rid.encode().ljust(4)
    return SimulatedRequest(
        rid=rid,
        prompt=mark * prompt_tokens,
        max_new_tokens=output_tokens,
        ends_after=output_tokens,
        output_ids=lambda tokens: mark * tokens,
    )


def test_a_request_alone_takes_what_the_formula_says() -> None:
    """30 ms front end, 5 + 0.5 × 10 of prefill, then 10 + 1 a token."""
    log = Log()
    replicas = VirtualReplicas(PROFILE, SchedulerFlags(max_total_tokens=1000), log)
    replicas.at(100, lambda: replicas.arrive(a_request("a", 10, 3), 0))
    replicas.run()
    assert log.lines == [
        ("a", 1, 140.0),
        ("a", 2, 151.0),
        ("a", 3, 162.0),
        ("a", EndReason.LENGTH, 162.0),
    ]


def test_what_comes_at_one_instant_is_prefilled_together() -> None:
    """5 + 0.5 × 20 for both, then 10 + 2."""
    log = Log()
    replicas = VirtualReplicas(PROFILE, SchedulerFlags(max_total_tokens=1000), log)
    for rid in "ab":
        replicas.at(0, lambda rid=rid: replicas.arrive(a_request(rid, 10, 2), 0))  # type: ignore[misc] # bound early
    replicas.run()
    assert [line for line in log.lines if line[1] in (1, 2)] == [
        ("a", 1, 45.0),
        ("b", 1, 45.0),
        ("a", 2, 57.0),
        ("b", 2, 57.0),
    ]


def test_replicas_do_not_wait_for_each_other() -> None:
    """Each has its own batch under the one clock."""
    log = Log()
    replicas = VirtualReplicas(PROFILE, SchedulerFlags(max_total_tokens=1000), log, replicas=2)
    replicas.at(0, lambda: replicas.arrive(a_request("a", 10, 1), 0))
    replicas.at(0, lambda: replicas.arrive(a_request("b", 20, 1), 1))
    replicas.run()
    assert [line for line in log.lines if line[1] == 1] == [("a", 1, 40.0), ("b", 1, 45.0)]


def test_the_clock_can_be_stopped_and_goes_on() -> None:
    """Nothing after the limit has happened."""
    log = Log()
    replicas = VirtualReplicas(PROFILE, SchedulerFlags(max_total_tokens=1000), log)
    replicas.at(0, lambda: replicas.arrive(a_request("a", 10, 3), 0))
    replicas.run(until_ms=45)
    assert log.lines == [("a", 1, 40.0)]
    replicas.run()
    assert log.lines[-1] == ("a", EndReason.LENGTH, 62.0)


def test_the_clock_gets_to_where_it_was_told_to_go() -> None:
    """Also past its last event, so that who waits for a time sees it."""
    replicas = VirtualReplicas(PROFILE, SchedulerFlags(max_total_tokens=1000), Log())
    replicas.at(10, lambda: None)
    replicas.run(until_ms=45)
    assert replicas.now_ms == 45
    replicas.run()
    assert replicas.now_ms == 45


def test_who_hangs_up_leaves_wherever_it_is() -> None:
    """In the front end and in the queue at once, in the batch with the step in flight."""
    log = Log()
    flags = SchedulerFlags(max_total_tokens=1000, max_running_requests=1)
    replicas = VirtualReplicas(PROFILE, flags, log)
    sent = {rid: a_request(rid, 10, 50) for rid in ("runs", "wait", "door", "last")}
    for at_ms, request in zip((0, 1, 40, 41), sent.values(), strict=True):
        replicas.at(at_ms, lambda request=request: replicas.arrive(request, 0))  # type: ignore[misc] # bound early
    for rid in ("runs", "wait", "door"):
        replicas.at(45.5, lambda rid=rid: replicas.abort(sent[rid]))  # type: ignore[misc] # bound early
    replicas.at(45.5, lambda: log.lines.append(("in flight", replicas.in_flight[0], 45.5)))
    replicas.at(90.0, lambda: replicas.abort(sent["runs"]))
    replicas.run()
    ends = [line for line in log.lines if isinstance(line[1], EndReason)]
    assert ends[:3] == [
        ("wait", EndReason.ABORT, 45.5),
        ("door", EndReason.ABORT, 45.5),
        ("runs", EndReason.ABORT, 51.0),
    ]
    assert [line[:2] for line in ends[3:]] == [("last", EndReason.LENGTH)]
    assert ("in flight", 2, 45.5) in log.lines
    assert replicas.in_flight == [0]


def test_a_full_queue_is_told() -> None:
    """The third has no place: one runs, one waits."""
    log = Log()
    flags = SchedulerFlags(max_total_tokens=1000, max_running_requests=1, max_queued_requests=1)
    replicas = VirtualReplicas(PROFILE, flags, log)
    for at_ms, rid in ((0, "a"), (20, "b"), (21, "c")):
        request = a_request(rid, 100, 5)
        replicas.at(at_ms, lambda request=request: replicas.arrive(request, 0))  # type: ignore[misc] # bound early
    replicas.run()
    assert [line for line in log.lines if line[0] == "c"] == [("c", None, 51.0)]

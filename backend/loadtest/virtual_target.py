"""The same schedule on simulated replicas, on the virtual clock, in this process, without HTTP."""

from collections.abc import Callable, Sequence
from functools import partial

from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.prompts import PromptText
from backend.loadtest.run import End, Outcome, Run, TargetFacts, WorkerSample
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile
from backend.simulated.replica import Replica
from backend.simulated.request import TOKEN_BYTES, EndReason, SimulatedRequest
from backend.simulated.scheduler_options import shown_flags
from backend.simulated.virtual import VirtualReplicas

Route = Callable[[PlannedRequest, VirtualReplicas], int]
ENDS: dict[EndReason | None, End] = {
    EndReason.STOP: "ok",
    EndReason.LENGTH: "ok",
    EndReason.ABORT: "aborted",
    EndReason.OUT_OF_MEMORY: "failed",
    None: "unavailable",
}
OUTPUT_BIT = 1 << 31
"""Set in the ids of generated tokens: no prompt begins with what another request generated."""


def least_busy(_: PlannedRequest, fleet: VirtualReplicas) -> int:
    """The replica with the fewest requests sent to it that have not ended, the first of several.
    One that is still in a front end counts: a router knows where it sent what."""
    return min(range(len(fleet.replicas)), key=fleet.in_flight.__getitem__)


def run_virtual(
    workload: Workload,
    profile: Profile,
    flags: SchedulerFlags,
    replicas: int = 1,
    *,
    sample_every_ms: float = 1000.0,
    route: Route = least_busy,
    timeout_ms: float = 600_000.0,
    look: Callable[[Sequence[Replica]], None] = lambda _: None,
) -> Run:
    """Run the whole schedule. A request that has not ended `timeout_ms` after its time leaves its
    replica and is `timeout`, as over HTTP. `look` is shown the replicas at the end, with all that
    they counted."""
    recorder = _Recorder()
    fleet = VirtualReplicas(profile, flags, recorder, replicas)
    prompts = PromptText()
    outcomes = [Outcome(planned, end="timeout") for planned in workload.requests]

    def send(outcome: Outcome) -> None:
        planned = outcome.planned
        outcome.sent_at_ms = fleet.now_ms
        request = simulated_request(planned, prompts.token_ids(planned), outcome, flags)
        recorder.sent(request)
        chosen = route(planned, fleet) if replicas > 1 else 0
        outcome.worker = f"simulated-{chosen}"
        fleet.arrive(request, chosen)
        fleet.at(planned.send_at_ms + timeout_ms, partial(give_up, outcome))

    def give_up(outcome: Outcome) -> None:
        request = recorder.timed_out(outcome, fleet.now_ms)
        if request is not None:
            fleet.abort(request)

    for outcome in outcomes:
        fleet.at(outcome.planned.send_at_ms, partial(send, outcome))
    samples: list[WorkerSample] = []

    def sample() -> None:
        samples.extend(_samples(fleet))
        if recorder.ended_count < len(outcomes):
            fleet.at(fleet.now_ms + sample_every_ms, sample)

    fleet.at(0.0, sample)
    fleet.run()
    look(fleet.replicas)
    chosen = shown_flags(profile, flags)
    return Run(
        workload=workload,
        target=TargetFacts(
            description=f"{replicas} x {profile.name}, virtual clock{chosen and f', {chosen}'}",
            simulated=True,
            step_times=profile.name,
        ),
        outcomes=outcomes,
        samples=samples,
        retracted=sum(replica.totals.retracted_requests for replica in fleet.replicas),
    )


def simulated_request(
    planned: PlannedRequest, prompt: bytes, owner: object, flags: SchedulerFlags
) -> SimulatedRequest:
    """The planned request as a replica takes it: it ends at its maximum, neither sooner nor later,
    as `min_tokens = max_tokens` has it over HTTP. Under priority scheduling interactive requests
    go before batch ones, by the two values that a gateway would send."""
    first = planned.traffic_class == "interactive"
    mark = OUTPUT_BIT | (planned.number & 0x7FFF_FFFF)
    token = mark.to_bytes(TOKEN_BYTES, "little")
    return SimulatedRequest(
        rid=f"load-{planned.number}",
        prompt=prompt,
        max_new_tokens=planned.output_tokens,
        ends_after=planned.output_tokens,
        output_ids=lambda tokens: token * tokens,
        priority=int(first != flags.schedule_low_priority_values_first),
        owner=owner,
    )


class _Recorder:
    """Writes what happens into the outcomes, each up to its end."""

    def __init__(self) -> None:
        self.ended_count = 0
        self._open: dict[int, SimulatedRequest] = {}

    def sent(self, request: SimulatedRequest) -> None:
        self._open[_outcome(request).planned.number] = request

    def timed_out(self, outcome: Outcome, now_ms: float) -> SimulatedRequest | None:
        """What has to be aborted; None where it has ended."""
        request = self._open.pop(outcome.planned.number, None)
        if request is not None:
            self.ended_count += 1
            outcome.ended_at_ms = now_ms
            outcome.status = None if outcome.first_token_at_ms is None else 200
        return request

    def generated(self, request: SimulatedRequest, now_ms: float) -> None:
        outcome = _outcome(request)
        if outcome.ended_at_ms is not None:
            return
        if outcome.last_token_at_ms is None:
            outcome.first_token_at_ms = now_ms
        else:
            outcome.gaps_ms.append(now_ms - outcome.last_token_at_ms)
        outcome.last_token_at_ms = now_ms

    def ended(self, request: SimulatedRequest, reason: EndReason | None, now_ms: float) -> None:
        outcome = _outcome(request)
        # The replica's end of one that was given up is no second end.
        if self._open.pop(outcome.planned.number, None) is None:
            return
        self.ended_count += 1
        outcome.ended_at_ms = now_ms
        outcome.end = ENDS[reason]
        outcome.status = 503 if reason is None else 200
        outcome.prompt_tokens = len(request.prompt) // TOKEN_BYTES
        outcome.cached_tokens = request.cached_tokens
        outcome.output_tokens = request.generated


def _outcome(request: SimulatedRequest) -> Outcome:
    if not isinstance(request.owner, Outcome):
        raise TypeError("a request that this run did not send")
    return request.owner


def _samples(fleet: VirtualReplicas) -> list[WorkerSample]:
    found = []
    for index, replica in enumerate(fleet.replicas):
        load = replica.load()
        found.append(
            WorkerSample(
                at_ms=fleet.now_ms,
                worker=f"simulated-{index}",
                running=load.running,
                waiting=load.waiting,
                waiting_tokens=load.waiting_uncached_tokens,
                kv_used_tokens=load.used_tokens,
                kv_total_tokens=load.max_total_tokens,
            )
        )
    return found

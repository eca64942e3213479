"""The part of a run that is measured, and what flowed through it."""

from collections.abc import Iterable
from dataclasses import dataclass

from backend.loadtest.measure import finished, tokens_out, ttft_ms
from backend.loadtest.plan import TrafficClass
from backend.loadtest.run import Outcome, Run

JUDGED_CLASS: TrafficClass = "interactive"
GROWTH_MAX = 1.5
GROWTH_MIN_MS = 100.0


@dataclass(frozen=True, slots=True)
class Window:
    """From the end of the warm-up to the end of the schedule; what drains after it is outside."""

    start_ms: float
    end_ms: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end_ms - self.start_ms) / 1000

    def holds(self, at_ms: float | None) -> bool:
        """Whether that instant lies in it."""
        return at_ms is not None and self.start_ms <= at_ms < self.end_ms


@dataclass(frozen=True, slots=True)
class Flow:
    """What happened within a window, whenever the requests were sent."""

    ended_rps: float
    """Whole answers that ended."""
    input_tokens_per_s: float
    """Prompt tokens, cached ones too, of the requests whose first token came."""
    cached_tokens_per_s: float
    output_tokens_per_s: float
    """Each request's tokens spread evenly from its first to its last."""
    in_flight_mean: float
    """Over time, from the actual send to the end."""
    in_flight_max: int


def steady_window(run: Run, warmup_ms: float) -> Window:
    """The window of a run.

    Raises:
        ValueError: the warm-up leaves nothing of it.
    """
    if not 0 <= warmup_ms < run.workload.duration_ms:
        raise ValueError(
            f"A warm-up of {warmup_ms / 1000:g} s leaves nothing to measure of a schedule of "
            f"{run.workload.duration_ms / 1000:g} s."
        )
    return Window(start_ms=warmup_ms, end_ms=run.workload.duration_ms)


def sent_within(run: Run, window: Window) -> list[Outcome]:
    """The requests whose intended send time lies in the window, and of which there is a verdict."""
    return [outcome for outcome in judged(run) if window.holds(outcome.planned.send_at_ms)]


def judged(run: Run) -> list[Outcome]:
    """All but what was in flight, or not yet sent, when the run was interrupted: nobody knows
    whether it would have been good."""
    return [outcome for outcome in run.outcomes if not unfinished(run, outcome)]


def unfinished(run: Run, outcome: Outcome) -> bool:
    """Whether only the end of the run ended it."""
    stopped_ms, ended_ms = run.stopped_at_ms, outcome.ended_at_ms
    return stopped_ms is not None and (ended_ms is None or ended_ms >= stopped_ms)


def flow(outcomes: Iterable[Outcome], window: Window) -> Flow:
    """What of these went through the target within the window, per second of it."""
    outcomes = list(outcomes)
    began = [o for o in outcomes if window.holds(o.first_token_at_ms)]
    mean, most = _in_flight(outcomes, window)
    return Flow(
        ended_rps=sum(finished(o) and window.holds(o.ended_at_ms) for o in outcomes)
        / window.seconds,
        input_tokens_per_s=sum(o.prompt_tokens for o in began) / window.seconds,
        cached_tokens_per_s=sum(o.cached_tokens or 0 for o in began) / window.seconds,
        output_tokens_per_s=sum(_tokens_within(o, window) for o in outcomes) / window.seconds,
        in_flight_mean=mean,
        in_flight_max=most,
    )


def judged_class(outcomes: Iterable[Outcome]) -> TrafficClass | None:
    """Whose figures decide: the interactive ones', or everyone's where there is none of them. A
    gateway may hold the others back on purpose."""
    return JUDGED_CLASS if any(_of_class(o, JUDGED_CLASS) for o in outcomes) else None


def queue_grows(run: Run, warmup_ms: float = 0.0) -> bool:
    """Whether the queue of those whose figures decide grows; see waits_grow."""
    window = steady_window(run, warmup_ms)
    sent = sent_within(run, window)
    decides = judged_class(sent)
    return waits_grow([o for o in sent if decides is None or _of_class(o, decides)], window)


def waits_grow(sent: Iterable[Outcome], window: Window) -> bool:
    """Whether who came in the second half of the window waited, on average, over 1.5 times as long
    for the first token as who came in the first (and 100 ms longer: a few long prompts do that to
    an idle target). What timed out without a token waited until then."""
    middle_ms = (window.start_ms + window.end_ms) / 2
    early: list[float] = []
    late: list[float] = []
    for outcome in sent:
        waited = _waited_ms(outcome, window)
        if waited is not None:
            (early if outcome.planned.send_at_ms < middle_ms else late).append(waited)
    if not early or not late:
        return False
    before, after = sum(early) / len(early), sum(late) / len(late)
    return after > GROWTH_MAX * before and after - before > GROWTH_MIN_MS


def _of_class(outcome: Outcome, traffic_class: TrafficClass) -> bool:
    return outcome.planned.traffic_class == traffic_class


def _waited_ms(outcome: Outcome, window: Window) -> float | None:
    if outcome.end == "timeout" and outcome.first_token_at_ms is None:
        return _left_at_ms(outcome, window) - outcome.planned.send_at_ms
    return ttft_ms(outcome)


def _left_at_ms(outcome: Outcome, window: Window) -> float:
    """When it was no longer in flight. What was given up without an end was to the last."""
    if outcome.ended_at_ms is not None:
        return outcome.ended_at_ms
    if outcome.end == "timeout":
        return window.end_ms
    return outcome.last_token_at_ms or outcome.sent_at_ms


def _tokens_within(outcome: Outcome, window: Window) -> float:
    first, last = outcome.first_token_at_ms, outcome.last_token_at_ms
    if first is None:
        return 0.0
    if last is None or last <= first:
        return tokens_out(outcome) if window.holds(first) else 0.0
    overlap = min(last, window.end_ms) - max(first, window.start_ms)
    return tokens_out(outcome) * max(0.0, overlap) / (last - first)


def _in_flight(outcomes: list[Outcome], window: Window) -> tuple[float, int]:
    busy_ms = 0.0
    changes: list[tuple[float, int]] = []
    for outcome in outcomes:
        start = max(outcome.sent_at_ms, window.start_ms)
        end = min(_left_at_ms(outcome, window), window.end_ms)
        if end > start:
            busy_ms += end - start
            changes += [(start, 1), (end, -1)]
    now = most = 0
    # At one instant who leaves goes before who comes: -1 sorts first.
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return busy_ms / (window.seconds * 1000), most

"""From what a user asks to a whole schedule, drawn before the first request goes out."""

import random
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from backend.loadtest.arrivals import exact_poisson_times_ms
from backend.loadtest.draft import Draft
from backend.loadtest.drawn_drafts import DrawnParameters, drawn_drafts
from backend.loadtest.ideal_hits import ideal_hit_rate
from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.trace_formats import Trace, read_mooncake, read_seedlike
from backend.loadtest.workload_error import WorkloadError
from backend.loadtest.workload_spec import WorkloadSpec

__all__ = ["WorkloadError", "WorkloadSpec", "read_workload"]


def read_workload(spec: WorkloadSpec) -> Workload:
    """The schedule of `spec`: an equal spec and an equal trace give an equal one.

    What is sent depends on the seed alone, and when on the seed and the rate: at another rate the
    same requests come in the same pattern, faster or slower. Raises WorkloadError.
    """
    spec.check()
    return _drawn(spec) if spec.drawn else _from_trace(spec)


def _drawn(spec: WorkloadSpec) -> Workload:
    parameters = DrawnParameters.of(spec)
    rate, bursts, chance = parameters.rate_rps, parameters.bursts, _chance(spec, "arrivals")
    duration_ms = parameters.duration_s * 1000
    times: Iterable[float] = (
        bursts.times_ms(rate, chance)
        if bursts
        else exact_poisson_times_ms(rate, duration_ms, chance)
    )
    drafts = drawn_drafts(parameters, _chance(spec, "requests"))
    return _workload(
        spec,
        name=spec.format,
        digest=parameters.sha256,
        arrivals=f"{bursts or 'Poisson'} at {rate:g} requests per second",
        requests=_planned(_until(times, duration_ms), drafts),
        duration_ms=duration_ms,
    )


def _from_trace(spec: WorkloadSpec) -> Workload:
    path = spec.path or Path()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WorkloadError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    trace = _window(spec, path, _read(spec, path, content))
    times, lasts_ms, arrivals = _trace_times(spec, trace)
    if spec.max_input_tokens is not None:
        arrivals += f", prompts of more than {spec.max_input_tokens} tokens left out"
    duration_ms = lasts_ms if spec.duration_s is None else spec.duration_s * 1000
    if duration_ms > lasts_ms:
        raise WorkloadError(
            f"{path} lasts {lasts_ms / 1000:.1f} s from {spec.start_s:g} s on "
            f"({len(trace.drafts)} requests, {arrivals}), not {duration_ms / 1000:g} s"
        )
    return _workload(
        spec,
        name=path.name,
        digest=sha256(content).hexdigest(),
        arrivals=arrivals,
        requests=_planned(_until(times, duration_ms), trace.drafts),
        duration_ms=duration_ms,
    )


def _read(spec: WorkloadSpec, path: Path, content: bytes) -> Trace:
    if spec.format == "seedlike":
        return read_seedlike(path, content)
    return read_mooncake(
        path,
        content,
        tenants=spec.tenants or 1,
        batch_share=spec.batch_share or 0.0,
        rng=_chance(spec, "trace"),
    )


def _window(spec: WorkloadSpec, path: Path, trace: Trace) -> Trace:
    """The rows from the start on that are not too long; their times count from the start."""
    start_ms = spec.start_s * 1000
    kept = [
        (time - start_ms, draft)
        for time, draft in zip(trace.times_ms, trace.drafts, strict=True)
        if time >= start_ms
        and (spec.max_input_tokens is None or draft.prompt_tokens <= spec.max_input_tokens)
    ]
    if not kept:
        longest = spec.max_input_tokens
        short = f" with at most {longest} prompt tokens" if longest else ""
        raise WorkloadError(f"{path} has no requests from {spec.start_s:g} s on{short}")
    return Trace([time for time, _ in kept], [draft for _, draft in kept])


def _trace_times(spec: WorkloadSpec, trace: Trace) -> tuple[Sequence[float], float, str]:
    """When the rows are sent, how long the trace lasts so, and the same in words."""
    own_ms = trace.times_ms
    # A trace ends with a second that has begun: the last request stands a little before the end.
    own_lasts_ms = (own_ms[-1] // 1000 + 1) * 1000
    rate = spec.rate_rps
    if rate is None:
        return own_ms, own_lasts_ms, "the trace's own times"
    keep_gaps = spec.format == "mooncake" if spec.keep_gaps is None else spec.keep_gaps
    if keep_gaps:
        scale = len(own_ms) / (own_lasts_ms / 1000) / rate
        scaled = [time * scale for time in own_ms]
        words = f"the trace's gaps scaled to {rate:g} requests per second"
        return scaled, own_lasts_ms * scale, words
    lasts_ms = len(own_ms) / rate * 1000
    asked_ms = lasts_ms if spec.duration_s is None else spec.duration_s * 1000
    times = exact_poisson_times_ms(rate, min(asked_ms, lasts_ms), _chance(spec, "arrivals"))
    return times, lasts_ms, f"Poisson at {rate:g} requests per second"


def _workload(
    spec: WorkloadSpec,
    *,
    name: str,
    digest: str,
    arrivals: str,
    requests: tuple[PlannedRequest, ...],
    duration_ms: float,
) -> Workload:
    if not requests:
        raise WorkloadError(f"{name}: nothing is sent in {duration_ms / 1000:g} s ({arrivals})")
    return Workload(
        name=name,
        sha256=digest,
        seed=spec.seed,
        arrivals=arrivals,
        requests=requests,
        duration_ms=duration_ms,
        ideal_hit_rate=ideal_hit_rate(requests),
    )


def _planned(times: Iterable[float], drafts: Iterable[Draft]) -> tuple[PlannedRequest, ...]:
    # Times are the shorter of the two.
    pairs = zip(times, drafts, strict=False)
    return tuple(draft.planned(number, time) for number, (time, draft) in enumerate(pairs))


def _until(times: Iterable[float], end_ms: float) -> Iterator[float]:
    for time in times:
        if time >= end_ms:
            return
        yield time


def _chance(spec: WorkloadSpec, purpose: str) -> random.Random:
    """One stream of chance for each purpose, so that one does not move when another draws more."""
    return random.Random(f"{spec.seed}/{purpose}")  # noqa: S311 - a schedule, no secret

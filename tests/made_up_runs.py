"""Made-up runs of a load test: requests with chosen times, and whole runs that look like one."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from backend.loadtest.knee import Knee
from backend.loadtest.plan import PlannedRequest, Segment, TrafficClass, Workload
from backend.loadtest.run import End, Outcome, Run, TargetFacts, WorkerSample
from backend.loadtest.summarise import summarise
from backend.loadtest.sweep import Sweep, SweepPoint, trial

SHA256 = "ab" * 32


class MadeRun(Protocol):
    """What makes a run at a rate."""

    def __call__(self, rate_rps: float, *, seed: int, seconds: int) -> Run:
        """Make it."""


def outcome(
    number: int = 0,
    *,
    send_at_ms: float = 0.0,
    lag_ms: float = 0.0,
    ttft_ms: float | None = 100.0,
    tpot_ms: float = 10.0,
    output_tokens: int = 11,
    prompt_tokens: int = 1_000,
    cached_tokens: int | None = 600,
    end: End = "ok",
    tenant: str = "acme",
    traffic_class: TrafficClass = "interactive",
) -> Outcome:
    """A request that streamed at an even pace; without a TTFT it failed at once."""
    planned = PlannedRequest(
        number, send_at_ms, tenant, traffic_class, (Segment("p", prompt_tokens),), output_tokens
    )
    made = Outcome(planned, sent_at_ms=send_at_ms + lag_ms, end=end)
    if ttft_ms is None:
        made.ended_at_ms = made.sent_at_ms
        return made
    made.first_token_at_ms = send_at_ms + ttft_ms
    made.last_token_at_ms = made.first_token_at_ms + tpot_ms * (output_tokens - 1)
    made.ended_at_ms = made.last_token_at_ms
    made.gaps_ms = array("f", [tpot_ms] * (output_tokens - 1))
    made.prompt_tokens, made.cached_tokens = prompt_tokens, cached_tokens
    made.output_tokens, made.status = output_tokens, 200
    return made


def run_of(
    outcomes: list[Outcome],
    *,
    duration_ms: float = 10_000.0,
    ideal_hit_rate: float = 0.6,
    simulated: bool | None = False,
    samples: list[WorkerSample] | None = None,
    cpu_share: float = 0.1,
    rows_written: int | None = None,
) -> Run:
    """A run whose schedule is what these were planned as."""
    workload = Workload(
        name="made-up",
        sha256=SHA256,
        seed=7,
        arrivals="by hand",
        requests=tuple(made.planned for made in outcomes),
        duration_ms=duration_ms,
        ideal_hit_rate=ideal_hit_rate,
    )
    step_times = "h100x4-70b-fp8" if simulated else None
    facts = TargetFacts("http://target", simulated, step_times=step_times)
    return Run(
        workload,
        facts,
        outcomes,
        samples or [],
        cpu_share,
        retracted=0,
        rows_written=rows_written,
    )


def lively_run(rate_rps: float, *, seed: int = 1, seconds: int = 120, workers: int = 2) -> Run:
    """A simulated target that grows slow near 7 requests a second a worker, as replica-model B4's
    does."""
    draw = random.Random(seed)  # noqa: S311
    load = rate_rps / workers / 7
    outcomes: list[Outcome] = []
    at_ms = 0.0
    while at_ms < seconds * 1000:
        batch = draw.random() < 0.3
        made = outcome(
            len(outcomes),
            send_at_ms=at_ms,
            lag_ms=draw.expovariate(5),
            ttft_ms=90 + draw.lognormvariate(4.2 + load, 0.6),
            tpot_ms=12 + 22 * load**2.5 * draw.lognormvariate(0, 0.2),
            output_tokens=max(1, min(400, int(draw.lognormvariate(3.5, 0.9)))),
            prompt_tokens=int(draw.lognormvariate(7.2, 0.9)),
            cached_tokens=400,
            tenant=f"tenant-{int(draw.paretovariate(1)) % 12:02d}",
            traffic_class="batch" if batch else "interactive",
        )
        made.gaps_ms = array("f", [g * draw.lognormvariate(-0.3, 0.8) for g in made.gaps_ms])
        if draw.random() < 0.01:
            made = outcome(
                len(outcomes),
                send_at_ms=at_ms,
                ttft_ms=None,
                end="unavailable",
                tenant=made.planned.tenant,
                traffic_class=made.planned.traffic_class,
            )
            made.status, made.code = 503, "no_capacity"
        outcomes.append(made)
        at_ms += draw.expovariate(rate_rps) * 1000
    samples = [
        WorkerSample(
            at_ms=second * 1000.0,
            worker=f"sim-{number}",
            running=int(60 * load * draw.uniform(0.7, 1.3)),
            waiting=int(3 * load * draw.random()),
            waiting_tokens=int(4_000 * load**3 * draw.random()),
            kv_used_tokens=int(
                640_000 * min(0.97, (0.4 + 0.05 * number) * load * draw.uniform(0.85, 1.15))
            ),
            kv_total_tokens=640_000,
        )
        for second in range(seconds)
        for number in range(workers)
    ]
    made_up = run_of(
        outcomes, duration_ms=seconds * 1000.0, simulated=True, samples=samples, ideal_hit_rate=0.59
    )
    made_up.rows_written = sum(made.status == 200 for made in outcomes)
    return made_up


def swept(rates_rps: Sequence[float], *, seeds: int = 1, made: MadeRun = lively_run) -> Sweep:
    """A sweep over these rates, judged as `weir loadtest --sweep` does."""
    knee = Knee(rates_rps[0], seeds=seeds)
    points = []
    for rate in sorted(rates_rps):
        summaries = [
            summarise(made(rate, seed=seed, seconds=40), warmup_ms=10_000) for seed in range(seeds)
        ]
        points.append(SweepPoint(rate_rps=rate, summaries=summaries))
        knee.observe(rate, [trial(summary) for summary in summaries])
    return Sweep(points=points, knee=knee.result)


def dead_run(rate_rps: float, *, seed: int = 1, seconds: int = 60) -> Run:
    """A target that nobody reaches, and that is not simulated."""
    count = int(rate_rps * seconds)
    outcomes = [
        outcome(at, send_at_ms=at * 1000 / rate_rps, ttft_ms=None, end="unreachable")
        for at in range(count)
    ]
    made = run_of(outcomes, duration_ms=seconds * 1000.0)
    return replace(made, workload=replace(made.workload, seed=seed))

"""How well interactive requests fare beside batch, behind virtual gateways: schedule, run, figures.

A control is `alone` (no batch is sent), `none` (everything is granted at once), `hold-N` (batch
stops at N sequences) or `learned`.
"""

import random
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from virtual_gateway import UNLIMITED, Learning, VirtualGateways

from backend.loadtest.measure import GoodputTargets, good, met_tpot, met_ttft, tpot_ms, ttft_ms
from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.plan import PlannedRequest
from backend.loadtest.workload import WorkloadSpec, read_workload
from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.scheduler_options import flags_of
from gateway.domain.queue.ceilings import START, EngineFacts
from gateway.domain.queue.learning import LatencyRule

TRACE = "seedlike_8rps_30min.jsonl"
TARGETS = GoodputTargets(prompt_tokens_under=4_000)
GATEWAYS = 3


@dataclass(frozen=True, slots=True)
class Load:
    """Requests a second, for each replica."""

    interactive_rps: float
    batch_rps: float

    @classmethod
    def parse(cls, text: str) -> "Load":
        """`4+4`."""
        interactive, _, batch = text.partition("+")
        return cls(float(interactive), float(batch))


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. Shares are of the interactive requests sent; None without any."""

    goodput: float | None
    ttft_met: float | None
    tpot_met: float | None
    ttft_p95_ms: float | None
    tpot_p95_ms: float | None
    interactive_tokens_per_s: float
    batch_tokens_per_s: float
    ceiling: float | None
    """Where batch stops, mean over time and workers."""
    taken_back: float


def requests(
    load: Load, *, replicas: int, duration_s: float, seed: int, traces: Path | None
) -> list[PlannedRequest]:
    """The schedule: the classes are drawn apart from all else."""
    rate = (load.interactive_rps + load.batch_rps) * replicas
    spec = WorkloadSpec("poisson", rate_rps=rate, duration_s=duration_s, seed=seed)
    if traces is not None:
        spec = replace(spec, format="seedlike", path=traces / TRACE)
    chance = random.Random(f"{seed}/classes")  # noqa: S311 - a schedule, no secret
    share = load.batch_rps * replicas / rate
    return [
        replace(each, traffic_class="batch" if chance.random() < share else "interactive")
        for each in read_workload(spec).requests
    ]


def one_run(
    planned: list[PlannedRequest],
    control: str,
    *,
    replicas: int,
    duration_s: float,
    warmup_s: float,
    rule: LatencyRule | None = None,
    start: int = START,
) -> Figures:
    """One control, one seed."""
    profile = DEFAULT_PROFILE
    rule = rule or LatencyRule()
    facts = EngineFacts(kv_tokens=profile.kv_tokens)
    learning = None
    if control == "learned":
        learning = Learning(rule, facts, workers=replicas, gateways=GATEWAYS, start=start)
    held = replace(UNLIMITED, batch_max=int(control.removeprefix("hold-") if "-" in control else 0))
    gateways = VirtualGateways(
        profile,
        flags_of(profile, {"radix_eviction_policy": "slru"}),
        replicas=replicas,
        gateways=GATEWAYS,
        learning=learning,
        fixed=held if held.batch_max else UNLIMITED,
        window_ms=(warmup_s * 1000, duration_s * 1000),
    )
    for each in planned:
        if control != "alone" or each.traffic_class == "interactive":
            gateways.plan(each)
    until_ms = duration_s * 1000
    gateways.fleet.run(until_ms)
    while any(each.planned.traffic_class == "interactive" for each in gateways.flights.values()):
        until_ms += 5_000
        gateways.fleet.run(until_ms)
    return figures(gateways, learning, duration_s=duration_s, warmup_s=warmup_s)


def figures(
    gateways: VirtualGateways, learning: Learning | None, *, duration_s: float, warmup_s: float
) -> Figures:
    """What the window shows."""
    sent = [
        each
        for each in gateways.outcomes
        if each.planned.traffic_class == "interactive"
        and each.planned.send_at_ms >= warmup_s * 1000
    ]
    ttfts = sorted(each for outcome in sent if (each := ttft_ms(outcome)) is not None)
    tpots = sorted(each for outcome in sent if (each := tpot_ms(outcome)) is not None)
    seconds = duration_s - warmup_s
    tokens = gateways.counted.tokens
    return Figures(
        goodput=sum(good(each, TARGETS) for each in sent) / len(sent) if sent else None,
        ttft_met=sum(met_ttft(each, TARGETS) for each in sent) / len(sent) if sent else None,
        tpot_met=sum(met_tpot(each, TARGETS) for each in sent) / len(sent) if sent else None,
        ttft_p95_ms=nearest_rank(ttfts, 95) if ttfts else None,
        tpot_p95_ms=nearest_rank(tpots, 95) if tpots else None,
        interactive_tokens_per_s=tokens["interactive"] / seconds,
        batch_tokens_per_s=tokens["batch"] / seconds,
        ceiling=_mean_ceiling(learning, duration_s, warmup_s) if learning else None,
        taken_back=float(gateways.counted.taken_back),
    )


def _mean_ceiling(learning: Learning, duration_s: float, warmup_s: float) -> float:
    """Of the decisions in the window."""
    within = [
        batch_max
        for at_ms, _, batch_max in learning.decided
        if warmup_s * 1000 <= at_ms < duration_s * 1000
    ]
    return fmean(within or [each.batch_max for each in learning.learned])


def middle(rows: list[Figures]) -> Figures:
    """Medians over seeds."""
    medians: dict[str, Any] = {}
    for name in Figures.__dataclass_fields__:
        values = [getattr(row, name) for row in rows]
        medians[name] = None if None in values else median(values)
    return Figures(**medians)

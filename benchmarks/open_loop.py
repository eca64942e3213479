"""One simulated replica under an open loop on the `seedlike` mix, on the virtual clock.

`python benchmarks/open_loop.py --traces DIR [--seeds N] [--policy lru|slru|...]` prints a row a
rate, beside what an earlier, independent simulation of the same step times gave for it
(replica-model B4). Poisson arrivals at exactly the rate; the trace's rows in order; the first 200 s
are left out. Figures do not depend on this machine.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import click

from backend.loadtest.measure import GoodputTargets
from backend.loadtest.plan import Workload
from backend.loadtest.summarise import summarise
from backend.loadtest.summary import Summary
from backend.loadtest.virtual_target import run_virtual
from backend.loadtest.workload import WorkloadSpec, read_workload
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import PROFILES, Profile
from backend.simulated.replica import Replica
from backend.simulated.scheduler_options import flags_of

TRACE = "seedlike_8rps_30min.jsonl"
ROWS = 14_000
"""Of the trace's 14,261."""
WARMUP_MS = 200_000.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One row. `ttft_ms` without the front end, as the earlier simulation has it."""

    output_tokens_per_s: float
    ttft_p95_ms: float
    tpot_p95_ms: float
    itl_p99_ms: float
    decode_batch: float
    peak_kv: float
    attainment: float
    hit_rate: float | None = None


EARLIER = {
    4.0: Figures(1690, 243, 23.0, 102, 29, 0.23, 0.994),
    6.0: Figures(2440, 320, 31.9, 164, 55, 0.36, 0.981),
    6.5: Figures(2620, 339, 35.7, 185, 65, 0.39, 0.970),
    7.0: Figures(2830, 388, 42.1, 221, 80, 0.42, 0.904),
    7.5: Figures(3050, 394, 47.6, 252, 97, 0.45, 0.651),
    8.0: Figures(3250, 430, 56.4, 306, 115, 0.56, 0.289),
    9.0: Figures(3660, 570, 86.9, 386, 146, 0.87, 0.018),
    10.0: Figures(4000, 22_091, 105.9, 538, 257, 0.96, 0.0),
}


def one_run(workload: Workload, profile: Profile, flags: SchedulerFlags) -> Figures:
    """The row of one run."""
    seen: list[Replica] = []
    run = run_virtual(workload, profile, flags, look=seen.extend)
    found = summarise(run, GoodputTargets(), WARMUP_MS)
    totals = seen[0].totals
    return Figures(
        output_tokens_per_s=found.tokens.output_tokens_per_s,
        ttft_p95_ms=_p(found, "ttft", "p95") - profile.front_end_ms,
        tpot_p95_ms=_p(found, "tpot", "p95"),
        itl_p99_ms=_p(found, "itl", "p99"),
        decode_batch=(totals.generated_tokens - totals.requests) / totals.steps["decode"],
        peak_kv=max(each.kv_used_max_share for each in found.fleet.workers),
        attainment=found.all.goodput.attainment_share,
        hit_rate=found.hit_rate.window_share,
    )


def _p(summary: Summary, measure: str, percentile: str) -> float:
    value: float = getattr(getattr(summary.all, measure), f"{percentile}_ms")
    return value


def mean(rows: Sequence[Figures]) -> Figures:
    """Over seeds."""
    names = Figures.__dataclass_fields__
    return Figures(**{name: fmean(getattr(row, name) for row in rows) for name in names})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="h100x4-70b-fp8")
    parser.add_argument("--policy", choices=("lru", "lfu", "slru"), default="slru")
    parser.add_argument("--mixed-chunk", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rates", default=",".join(f"{rate:g}" for rate in EARLIER))
    asked = parser.parse_args()
    profile = PROFILES[asked.profile]
    chosen = {
        "radix_eviction_policy": asked.policy,
        "enable_mixed_chunk": asked.mixed_chunk,
    }
    flags = flags_of(profile, chosen)
    click.echo(
        f"SIMULATED: {profile.name}, virtual clock, eviction {asked.policy}, mixed chunk "
        f"{'on' if asked.mixed_chunk else 'off'}, {asked.seeds} seed(s); in brackets the earlier "
        "simulation\n"
    )
    click.echo(
        "| rps | out tok/s | TTFT p95 ms, without the front end | TPOT p95 ms | ITL p99 ms | "
        "mean decode batch | peak locked KV | goodput attainment | hit rate |"
    )
    click.echo("| --- " * 9 + "|")
    for rate in map(float, asked.rates.split(",")):
        rows = []
        for seed in range(asked.seeds):
            spec = WorkloadSpec(
                format="seedlike",
                path=asked.traces / TRACE,
                rate_rps=rate,
                duration_s=ROWS / rate,
                seed=seed,
            )
            rows.append(one_run(read_workload(spec), profile, flags))
        click.echo(row(rate, mean(rows), EARLIER.get(rate)))


def row(rate: float, got: Figures, earlier: Figures | None) -> str:
    """One line of the table."""
    formats = {
        "output_tokens_per_s": ",.0f",
        "ttft_p95_ms": ",.0f",
        "tpot_p95_ms": ".1f",
        "itl_p99_ms": ".0f",
        "decode_batch": ".0f",
        "peak_kv": ".2f",
        "attainment": ".3f",
        "hit_rate": ".3f",
    }
    cells = [f"{rate:g}"]
    for name, form in formats.items():
        before = getattr(earlier, name, None)
        cell = format(getattr(got, name), form)
        cells.append(cell if before is None else f"{cell} ({format(before, form)})")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()

"""Interactive goodput over batch: the queue in front of simulated replicas, on the virtual clock.

`PYTHONPATH=.:tests python benchmarks/queue_goodput.py [--traces DIR] [--seeds 5] [--loads 4+4,...]
[--controls learned,none,hold-80,alone] [--replicas 1]` prints a row for each load and control,
medians over the seeds: Poisson arrivals, interactive and batch requests a second for each replica,
eviction `slru`. Without `--traces` requests are drawn as the `seedlike` trace was. Figures are
simulated and do not depend on this machine.
"""

import argparse
from pathlib import Path

import click
from virtual_goodput import Figures, Load, middle, one_run, requests

from backend.simulated.profiles import DEFAULT_PROFILE

CONTROLS = ("alone", "none", "hold-80", "learned")


def row(load: str, control: str, found: Figures, worst: float | None) -> str:
    """One line of the table."""
    shown = [
        (found.goodput, ".3f"), (worst, ".3f"), (found.ttft_met, ".3f"), (found.tpot_met, ".3f"),
        (found.ttft_p95_ms, ",.0f"), (found.tpot_p95_ms, ".1f"),
        (found.interactive_tokens_per_s, ",.0f"), (found.batch_tokens_per_s, ",.0f"),
        (found.ceiling, ".0f"), (found.taken_back, ".0f"),
    ]  # fmt: skip
    cells = ["–" if value is None else format(value, form) for value, form in shown]
    return "| " + " | ".join([load, control, *cells]) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--loads", default="4+4,6+6,2+6,4+0,0+8")
    parser.add_argument("--controls", default=",".join(CONTROLS))
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--duration", type=float, default=450.0)
    parser.add_argument("--warmup", type=float, default=130.0)
    asked = parser.parse_args()
    click.echo(
        f"SIMULATED: {asked.replicas} x {DEFAULT_PROFILE.name}, virtual clock, eviction slru, "
        f"{asked.seeds} seeds, {asked.duration:g} s of which the first {asked.warmup:g} s are "
        "left out\n"
    )
    click.echo(
        "| interactive + batch rps a replica | control | interactive goodput | lowest seed | "
        "TTFT met | TPOT met | TTFT p95 ms | TPOT p95 ms | interactive tok/s | batch tok/s | "
        "batch stops at | taken back |"
    )
    click.echo("| --- " * 12 + "|")
    for load in asked.loads.split(","):
        drawn = [
            requests(
                Load.parse(load),
                replicas=asked.replicas,
                duration_s=asked.duration,
                seed=seed,
                traces=asked.traces,
            )
            for seed in range(asked.seeds)
        ]
        for control in asked.controls.split(","):
            rows = [
                one_run(
                    planned,
                    control,
                    replicas=asked.replicas,
                    duration_s=asked.duration,
                    warmup_s=asked.warmup,
                )
                for planned in drawn
            ]
            goodputs = [each.goodput for each in rows if each.goodput is not None]
            click.echo(row(load, control, middle(rows), min(goodputs, default=None)))


if __name__ == "__main__":
    main()

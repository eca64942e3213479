"""How near the simulated replica comes to measured ones: 15 points by the benchmark's own protocol.

`python benchmarks/calibration.py [--profile NAME] [--seed N]` prints each point, measured and
simulated, the mean errors, and what remains of them when the constants are fitted without the
workload that they are then asked for (leave one workload out). Everything simulated runs on the
virtual clock: the figures do not depend on this machine.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import click
import numpy as np
from numpy.typing import NDArray

from backend.simulated.closed_loop import (
    REQUESTS_PER_CLIENT,
    ClosedLoop,
    ClosedLoopPoint,
    ClosedLoopResult,
)
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import PROFILES, Profile, StepTimes

Matrix = NDArray[np.float64]
POINTS = Path(__file__).parent / "data" / "h100x4_llama70b_fp8.csv"
MEAN_LENGTH = 0.9
"""Of the nominal lengths, drawn uniformly between 0.8 and 1."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured point."""

    point: ClosedLoopPoint
    ttft_ms: float
    tpot_ms: float

    @property
    def workload(self) -> str:
        """Its nominal lengths."""
        return f"{self.point.input_tokens}/{self.point.output_tokens}"


def measured_points(path: Path = POINTS) -> list[Measured]:
    """The points of the file, in its order."""
    with path.open(newline="") as file:
        return [
            Measured(
                ClosedLoopPoint(
                    int(row["input_tokens"]), int(row["output_tokens"]), int(row["concurrency"])
                ),
                float(row["ttft_ms"]),
                float(row["tpot_ms"]),
            )
            for row in csv.DictReader(file)
        ]


def simulate(profile: Profile, point: ClosedLoopPoint, seed: int) -> ClosedLoopResult:
    """The point on the simulated replica."""
    flags = SchedulerFlags(
        max_total_tokens=profile.kv_tokens, context_length=profile.context_tokens
    )
    return ClosedLoop(profile, flags, point, seed).run()


def error(simulated: float, measured: float) -> float:
    """Relative, signed."""
    return simulated / measured - 1


def mean_error(errors: Iterable[float]) -> float:
    """Mean of their sizes."""
    return fmean(abs(each) for each in errors)


def fitted(points: Sequence[Measured], base: StepTimes, front_end_ms: float) -> StepTimes:
    """Least squares of the relative errors of TPOT and TTFT together, over a0, a1, a2 and b1, none
    of them negative; b0 and b2 stay: the points hardly tell them.

    In a closed loop of C clients a request's decode steps have a batch of C with a mean context of
    prompt and half the output, and while it decodes each of the others sends one prompt, whose
    prefill step stops it. Its own first token waits for the front end, half a decode step, its own
    prefill, and for one request in ten for half of the prompts that came with it at the start.
    """
    rows: list[list[float]] = []
    wanted: list[float] = []
    for each in points:
        n_in = MEAN_LENGTH * each.point.input_tokens
        n_out = MEAN_LENGTH * each.point.output_tokens
        batch = each.point.concurrency
        decode = [1.0, batch, batch * (n_in + n_out / 2)]
        fixed_ms = base.b0_ms + base.b2_ms * n_in * n_in / 2
        prefills = (batch - 1) / n_out
        rows.append([term / each.tpot_ms for term in (*decode, prefills * n_in)])
        wanted.append((each.tpot_ms - prefills * fixed_ms) / each.tpot_ms)
        prefills = 1 + (batch - 1) / 2 / REQUESTS_PER_CLIENT
        halves = [term / 2 for term in decode]
        rows.append([term / each.ttft_ms for term in (*halves, prefills * n_in)])
        wanted.append((each.ttft_ms - front_end_ms - prefills * fixed_ms) / each.ttft_ms)
    a0, a1, a2, b1 = _least_squares(np.array(rows), np.array(wanted))
    return StepTimes(a0, a1, a2, base.b0_ms, b1, base.b2_ms)


def _least_squares(rows: Matrix, wanted: Matrix) -> list[float]:
    """The best solution without a negative value: that of the best subset of columns."""
    columns = range(rows.shape[1])
    best: tuple[float, list[float]] | None = None
    for size in range(1, rows.shape[1] + 1):
        for chosen in combinations(columns, size):
            found = np.linalg.lstsq(rows[:, chosen], wanted, rcond=None)[0]
            if (found < 0).any():
                continue
            solution = np.zeros(rows.shape[1])
            solution[list(chosen)] = found
            squares = float(((rows @ solution - wanted) ** 2).sum())
            if best is None or squares < best[0]:
                best = (squares, [float(value) for value in solution])
    if best is None:
        raise ValueError("no constant explains the points")
    return best[1]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="h100x4-70b-fp8")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    profile, points = PROFILES[asked.profile], measured_points()
    click.echo(f"SIMULATED: {profile.name}, virtual clock, seed {asked.seed}\n")
    click.echo("| in/out | C | TTFT ms measured | simulated | | TPOT ms measured | simulated | |")
    click.echo("| --- | --- | --- | --- | --- | --- | --- | --- |")
    ttft_errors, tpot_errors = [], []
    for each in points:
        got = simulate(profile, each.point, asked.seed)
        ttft_errors.append(error(got.ttft_ms, each.ttft_ms))
        tpot_errors.append(error(got.tpot_ms, each.tpot_ms))
        click.echo(
            f"| {each.workload} | {each.point.concurrency} | {each.ttft_ms:,.0f} | "
            f"{got.ttft_ms:,.0f} | {ttft_errors[-1]:+.1%} | {each.tpot_ms:.1f} | "
            f"{got.tpot_ms:.1f} | {tpot_errors[-1]:+.1%} |"
        )
    click.echo(
        f"\nmean error TPOT {mean_error(tpot_errors):.1%} (largest "
        f"{max(map(abs, tpot_errors)):.1%}), TTFT {mean_error(ttft_errors):.1%} (largest "
        f"{max(map(abs, ttft_errors)):.1%})"
    )
    click.echo("\nConstants fitted without a workload, then simulated on it:\n")
    click.echo("| left out | a0 ms | a1 ms | a2 ms | b1 ms | TPOT mean error | largest |")
    click.echo("| --- | --- | --- | --- | --- | --- | --- |")
    for workload in dict.fromkeys(each.workload for each in points):
        left_out = [each for each in points if each.workload == workload]
        others = [each for each in points if each.workload != workload]
        step = fitted(others, profile.step, profile.front_end_ms)
        other = replace(profile, step=step)
        errors = [
            error(simulate(other, each.point, asked.seed).tpot_ms, each.tpot_ms)
            for each in left_out
        ]
        click.echo(
            f"| {workload} | {step.a0_ms:.2f} | {step.a1_ms:.4f} | {step.a2_ms:.2e} | "
            f"{step.b1_ms:.4f} | {mean_error(errors):.1%} | {max(map(abs, errors)):.1%} |"
        )


if __name__ == "__main__":
    main()

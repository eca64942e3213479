"""Interactive goodput over batch through a real gateway, over HTTP in real time, beside the virtual
clock: the same arrivals, a simulated replica.

`PYTHONPATH=.:tests python benchmarks/queue_http.py [--traces DIR] [--load 4+4] [--duration 260]
[--warmup 110] [--seed 1] [--interval 4] [--realtime]` prints a row for each. The replica's figures
are simulated; what the gateway, the store and the machine take is real. A second pair of rows
without batch says how much the machine takes where the queue has nothing to hold.
"""

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from queue_http_goodput import HttpFigures, one_http_run, scheduled
from virtual_goodput import Figures, Load, one_run

HEAD = (
    "| interactive + batch rps | clock | interactive goodput | TTFT met | TPOT met | TTFT p95 ms | "
    "TPOT p95 ms | batch tok/s | what the machine took |"
)


def virtual_row(load: str, found: Figures) -> str:
    """One line."""
    return (
        f"| {load} | virtual | {found.goodput:.3f} | {found.ttft_met:.3f} | "
        f"{found.tpot_met:.3f} | {found.ttft_p95_ms:,.0f} | {found.tpot_p95_ms:.1f} | "
        f"{found.batch_tokens_per_s:,.0f} | – |"
    )


def http_row(load: str, found: HttpFigures, duration_s: float) -> str:
    """One line."""
    shares = [
        f"{name} used {each.used_s / duration_s:.0%} of a core, waited for it "
        f"{each.waited_s / duration_s:.0%} of the time"
        for name, each in (("gateway", found.gateway), ("replica", found.worker))
    ]
    machine = (
        f"{'; '.join(shares)}; steps late by {found.step_lag_p95_ms:.0f} ms (p95), "
        f"the generator by {found.generator_lag_p99_ms:.0f} ms (p99)"
    )
    return (
        f"| {load} | HTTP | {found.goodput:.3f} | {found.ttft_met:.3f} | {found.tpot_met:.3f} | "
        f"{found.ttft_p95_ms:,.0f} | {found.tpot_p95_ms:.1f} | {found.batch_tokens_per_s:,.0f} | "
        f"{machine} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--load", default="4+4")
    parser.add_argument("--duration", type=float, default=260.0)
    parser.add_argument("--warmup", type=float, default=110.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=int, default=4, help="tokens an event")
    parser.add_argument(
        "--realtime", action="store_true", help="go before all else on this machine"
    )
    parser.add_argument("--no-alone", action="store_true", help="leave out the pair without batch")
    asked = parser.parse_args()
    click.echo(f"SIMULATED replica, eviction slru, seed {asked.seed}\n\n{HEAD}\n{'| --- ' * 9}|")
    interactive = asked.load.partition("+")[0]
    for load in [asked.load] + [f"{interactive}+0"] * (not asked.no_alone):
        workload = scheduled(
            Load.parse(load), duration_s=asked.duration, seed=asked.seed, traces=asked.traces
        )
        found = one_run(
            list(workload.requests), "learned", replicas=1,
            duration_s=asked.duration, warmup_s=asked.warmup,
        )  # fmt: skip
        click.echo(virtual_row(load, found))
        with TemporaryDirectory() as folder:
            over_http = asyncio.run(
                one_http_run(
                    Path(folder), workload,
                    warmup_s=asked.warmup, interval=asked.interval, realtime=asked.realtime,
                )
            )  # fmt: skip
        click.echo(http_row(load, over_http, asked.duration))
        click.echo(f"\nbatch stopped at {over_http.ceilings}, every ten seconds\n")


if __name__ == "__main__":
    main()

"""Goodput against offered load, with the knee: one simulated replica asked directly, one behind
Weir, four behind Weir. `window-1` is the baseline of those behind Weir: one replica asked directly
for just as long, with the same cache at its start.

`python benchmarks/curves.py --traces DIR [--only seedlike-direct-1,...] [--work DIR]` runs
`weir loadtest --rates ...` on each system and leaves a picture and a summary in
`benchmarks/curves/`. The replicas are simulated, and everything shown says so. Asked directly they
run on the virtual clock, long enough for a warm cache; behind Weir over HTTP, where what the
gateway and the wire take is real, on a machine that should do nothing else meanwhile.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from backend.embedded import free_port

HERE = Path(__file__).parent
WEIR = (sys.executable, "-m", "gateway")
READY_WITHIN_S = 120.0
EVICTION = ("--radix-eviction-policy", "slru")


@dataclass(frozen=True, slots=True)
class Load:
    """A workload and how hard it is sent. Times are the target's seconds."""

    options: tuple[str, ...]
    trace: str
    rates_per_replica: dict[str, tuple[float, ...]]
    """By system: four replicas share what one cannot, and a knee must lie between two rates."""
    duration_s: float
    warmup_s: float
    """Until the prefix cache is full of what is popular."""
    virtual_duration_s: float
    """On the virtual clock, where an hour costs seconds."""


@dataclass(frozen=True, slots=True)
class System:
    """What is tested."""

    replicas: int
    gateways: int
    """0: the replica is asked directly, on the virtual clock."""
    speed: float
    """Of the replicas' clocks. Above 1 what Weir takes is shown so many times too large."""
    stream_interval: int
    """Tokens in an event, as SGLang's flag of that name: what one core of gateway can relay at
    this speed."""
    is_long: bool = False
    """For the load's `virtual_duration_s`; else for as long as the others."""


LOADS = {
    "seedlike": Load(
        options=("--workload", "seedlike"),
        trace="seedlike_8rps_30min.jsonl",
        rates_per_replica={
            "direct-1": (4.0, 5.0, 6.0, 6.5, 7.0, 7.5, 8.0),
            "window-1": (5.5, 6.5, 7.5),
            "weir-1": (5.5, 6.5, 7.5),
            "weir-4": (5.0, 6.5, 7.0),
        },
        duration_s=340.0,
        warmup_s=140.0,
        virtual_duration_s=1700.0,
    ),
    "mooncake": Load(
        # A prompt of 20,000 tokens takes a second by itself: the target on TTFT is for those
        # under 4,000, as the interactive class has it.
        options=(
            *("--workload", "mooncake", "--max-input-tokens", "32768"),
            *("--targets", "ttft=800,tpot=40,under=4000"),
        ),
        trace="mooncake_conversation_first20min.jsonl",
        rates_per_replica={
            "direct-1": (0.3, 0.4, 0.5, 0.6, 0.75, 0.9),
            "window-1": (0.4, 0.6, 0.75),
            "weir-1": (0.4, 0.6, 0.75),
            "weir-4": (0.45, 0.6, 0.75, 0.9),
        },
        duration_s=400.0,
        warmup_s=100.0,
        virtual_duration_s=2000.0,
    ),
}
SYSTEMS = {
    "direct-1": System(replicas=1, gateways=0, speed=1.0, stream_interval=1, is_long=True),
    "window-1": System(replicas=1, gateways=0, speed=1.0, stream_interval=1),
    "weir-1": System(replicas=1, gateways=1, speed=1.0, stream_interval=4),
    "weir-4": System(replicas=4, gateways=1, speed=1.0, stream_interval=16),
}


@contextmanager
def running(system: System, folder: Path) -> Iterator[tuple[str, ...]]:
    """The system; what `weir loadtest` needs to find it."""
    if not system.gateways:
        yield ("--virtual", "h100x4-70b-fp8", "--scheduler", " ".join(EVICTION))
        return
    flags = [*EVICTION, "--speed", f"{system.speed:g}"]
    flags += ["--stream-interval", str(system.stream_interval)]
    log = (folder / "system.log").open("wb")
    target = ("--data-dir", str(folder / "data"))
    port = str(free_port(avoid=frozenset()))
    command = [*WEIR, "dev", *target, "--port", port, "--engine", "simulated"]
    command += ["--gateways", str(system.gateways), "--workers", str(system.replicas)]
    command += ["--worker-flags", " ".join(flags)]
    ready = folder / "data" / "ready.json"
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + READY_WITHIN_S
        while not (ready.exists() and ready.stat().st_size):
            if process.poll() is not None or time.monotonic() > deadline:
                raise click.ClickException(f"{' '.join(command)} did not start: see {log.name}")
            time.sleep(0.2)
        yield target
    finally:
        process.terminate()
        process.wait()
        log.close()


def sweep(name: str, traces: Path, folder: Path) -> None:
    """One curve, such as `seedlike-weir-1`."""
    load_name, _, system_name = name.partition("-")
    load, system = LOADS[load_name], SYSTEMS[system_name]
    rates = ",".join(f"{rate * system.replicas:g}" for rate in load.rates_per_replica[system_name])
    output = folder / "report"
    duration_s = load.virtual_duration_s if system.is_long else load.duration_s
    with running(system, folder) as target:
        command = [
            *(*WEIR, "loadtest", *target, *load.options, "--trace", str(traces / load.trace)),
            *("--sweep", "--rates", rates, "--duration", f"{duration_s:g}"),
            *("--warmup", f"{load.warmup_s:g}", "--output", str(output)),
            *("--repeats", "2"),
        ]
        click.echo(" ".join(command[2:]), err=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    click.echo(f"## {name}\n\n{done.stdout}", nl=True)
    if done.returncode:
        raise click.ClickException(f"{name}: the load test ended with {done.returncode}")
    kept = HERE / "curves"
    kept.mkdir(exist_ok=True)
    shutil.copy(output / "plot.png", kept / f"{name}.png")
    summary = json.loads((output / "summary.json").read_text())
    for path in ("data_dir", "url", "path"):
        # Where it was on this machine is nobody's business.
        summary["parameters"].pop(path, None)
    (kept / f"{name}.json").write_text(json.dumps(summary, indent=1) + "\n")


def main() -> None:
    """Every curve asked for, one after the other: they share the processor."""
    names = [f"{load}-{system}" for load in LOADS for system in SYSTEMS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--only", default=",".join(names), help="of " + ", ".join(names))
    parser.add_argument("--work", type=Path, help="where to leave logs and whole reports")
    asked = parser.parse_args()
    for name in asked.only.split(","):
        sweep(name, asked.traces, Path(tempfile.mkdtemp(prefix=f"{name}-", dir=asked.work)))


if __name__ == "__main__":
    main()

"""`weir loadtest` as it is run from a shell, on a worker and on replicas in its own process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_process import WorkerProcess, running_worker

SMALL = (
    *("--prefixes", "none", "--suffix-lengths", "uniform:20-60"),
    *("--output-lengths", "uniform:5-20"),
)
VIRTUAL = ("--virtual", "h100x4-70b-fp8")
BOTTLENECK = "was the bottleneck"
"""On a machine that is busy with other tests the generator or a worker may be; then the run says so
and fails."""


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """A simulated worker."""
    with running_worker("simulated") as running:
        yield running


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process of its own, which heeds Ctrl-C: tests that run in the background
    of a shell ignore it, and their children would, too."""
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway", "loadtest", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                name: value for name, value in os.environ.items() if name != "WEIR_LOADTEST_API_KEY"
            },
        )
    finally:
        signal.signal(signal.SIGINT, ours)


def ran(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    process = started(*arguments)
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def documented(*arguments: str) -> Any:
    """The JSON of a run that succeeds, unless the machine was too busy to prove anything."""
    status, out, err = ran(*arguments, "--json")
    assert status == 0 or (status == 1 and BOTTLENECK in err), err
    assert out.count("\n") == 1
    return json.loads(out)


def test_a_worker_is_measured_and_named_simulated(worker: WorkerProcess) -> None:
    """Every request ends as planned; its own load is sampled; there are no books."""
    load = ("--url", worker.url, "--rate", "10", "--duration", "4", "--warmup", "1")
    (run,) = documented(*load, *SMALL)["runs"]
    assert run["target"]["simulated"] is True
    assert run["target"]["step_times"] == "h100x4-70b-fp8"
    assert run["ends"] == {"ok": run["all"]["sent"]}
    assert run["tokens"]["output_planned_share"] == 1
    assert [each["worker"] for each in run["fleet"]["workers"]] == ["worker"]
    assert run["rows"] is None


def test_the_table_is_on_standard_output_alone(worker: WorkerProcess) -> None:
    """What goes on is on standard error, and so is what was not looked at."""
    _, out, err = ran("--url", worker.url, "--rate", "5", "--duration", "2", *SMALL)
    assert out.startswith("SIMULATED (profile h100x4-70b-fp8)")
    assert "rows are not compared" in err
    assert "SIMULATED" not in err


def test_a_virtual_sweep_finds_a_knee() -> None:
    """In seconds, the same each time, from the seed's mix, which it says it uses."""
    load = (*VIRTUAL, "--sweep", "--rate", "5", "--to", "10", "--duration", "60")
    first, second = documented(*load), documented(*load)
    knee = first["knee"]
    assert knee["done"]
    assert 4 <= knee["knee_rps"] < knee["failed_rps"] <= 10
    assert [run["all"] for run in first["runs"]] == [run["all"] for run in second["runs"]]
    _, _, err = ran(*VIRTUAL, "--rate", "4", "--duration", "5")
    assert "drawn as the seed's mix" in err


def test_more_replicas_serve_what_one_cannot() -> None:
    """Twelve requests a second: past the knee of one, under that of four."""
    load = (*VIRTUAL, "--rate", "12", "--duration", "40")
    one, four = documented(*load), documented(*load, "--replicas", "4")
    shares = [each["runs"][0]["all"]["goodput"]["attainment_share"] for each in (one, four)]
    assert shares[0] < 0.6
    assert shares[1] > 0.95


def test_ctrl_c_writes_what_there_is(worker: WorkerProcess) -> None:
    """A run of a minute, interrupted once something was measured: its JSON is of that much."""
    load = ("--url", worker.url, "--rate", "20", "--duration", "60", "--warmup", "0.1")
    process = started(*load, *SMALL, "--json")
    assert process.stderr is not None
    until_line(process, "sent")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert process.returncode == 130
    found = json.loads(out)
    assert found["interrupted"] is True
    load_run = found["runs"][0]["load"]
    assert 4_000 < load_run["duration_ms"] < 20_000
    assert load_run["requests"] < 400


def test_ctrl_c_breaks_into_a_virtual_run() -> None:
    """Which computes without a pause; the run before it is shown."""
    process = started(*VIRTUAL, "--sweep", "--rates", "1,14", "--duration", "2000")
    until_line(process, "1 rps (simulated): attainment")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 15
    assert process.returncode == 130, err
    assert out.startswith("SIMULATED")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--rate", "4"), 2, "needs a duration"),
        (("--rate", "4", "--duration", "9", "--data-dir", "nowhere"), 2, "is not there"),
        ((*VIRTUAL, "--rate", "4", "--duration", "9", "--warmup", "9"), 2, "leaves nothing"),
        (("--url", "http://127.0.0.1:9", "--rate", "4", "--duration", "9"), 1, "127.0.0.1:9"),
        (("--url", "nonsense", "--rate", "4", "--duration", "9"), 2, "not the URL"),
    ],
)
def test_what_cannot_run_says_why_in_one_line(
    arguments: tuple[str, ...], status: int, says: str, tmp_path: Path
) -> None:
    """And prints nothing else."""
    found, out, err = ran(*arguments)
    assert (found, out) == (status, ""), err
    assert err.startswith("weir: ")
    assert err.count("\n") == 1
    assert says in err


def until_line(process: subprocess.Popen[str], part: str) -> None:
    """Read standard error until a line has this; fails where it ends before."""
    assert process.stderr is not None
    for line in process.stderr:
        if part in line:
            return
    raise AssertionError(f"no line with {part!r}")

"""One schedule on the virtual clock and over HTTP in real time: the same replica, so the same
figures."""

import json
import subprocess
import sys
from typing import Any

import pytest
from worker_process import running_worker

PROMISED = 0.03
ASSERTED = 3 * PROMISED
"""A promised bound is asserted at three times its value: this machine runs other things, too."""
LOAD = (
    *("--workload", "poisson", "--rate", "7", "--duration", "30", "--warmup", "6", "--seed", "3"),
    *("--suffix-lengths", "lognormal:800,0.8,16-4000", "--prefixes", "40/1.0/fixed:900"),
    *("--output-lengths", "lognormal:150,0.5,16-400"),
)


def measured(*target: str) -> Any:
    """The run's summary."""
    command = [sys.executable, "-m", "gateway", "loadtest", *target, *LOAD, "--json"]
    command += ["--repeats", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=220, check=False)
    assert done.stdout, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert not run["refusals"], "five times over this machine could not keep real time"
    return run


@pytest.mark.timeout(300)
def test_http_in_real_time_agrees_with_the_virtual_clock() -> None:
    """TPOT, TTFT, hit rate and tokens. The tail of TTFT is a few requests: `benchmarks/` has it."""
    virtual = measured("--virtual", "h100x4-70b-fp8")
    with running_worker("simulated") as worker:
        real = measured("--url", worker.url)
    assert real["ends"] == virtual["ends"] == {"ok": virtual["all"]["sent"]}
    assert real["tokens"]["output_planned_share"] == 1
    for measure, figure in (
        ("tpot", "mean_ms"),
        ("tpot", "p95_ms"),
        ("ttft", "mean_ms"),
        ("e2e", "mean_ms"),
    ):
        expected, got = virtual["all"][measure][figure], real["all"][measure][figure]
        assert got == pytest.approx(expected, rel=ASSERTED), (measure, figure)
    hits = [run["hit_rate"]["run_share"] for run in (virtual, real)]
    assert hits[0] == pytest.approx(hits[1], rel=ASSERTED)

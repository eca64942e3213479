"""The benchmark of metrics and logs runs, by its one command, and shows every table."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_it_shows_what_each_costs() -> None:
    """A request whole, its parts alone, and all of it read; the baseline in the same run."""
    run = subprocess.run(
        (sys.executable, "-m", "benchmarks.telemetry", "--quick"),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if " | " in line]
    figures = {name: float(us.replace(",", "")) for name, us in rows if us[0].isdigit()}
    assert "the straight line, nothing counted" in figures
    assert figures["counting an ended request"] > figures["an empty call"]
    assert any(name.startswith("a scrape of ") for name in figures)

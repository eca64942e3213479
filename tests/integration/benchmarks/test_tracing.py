"""The benchmark of tracing runs, by its one command, and shows every row that it promises."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_it_shows_what_each_way_costs() -> None:
    """Without traces, noted and thrown away, and kept: of the last another thread encodes each."""
    run = subprocess.run(
        (sys.executable, "benchmarks/tracing.py", "--quick"),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if "---" not in line]
    assert [row[0] for row in rows] == ["traces", "off", "noted", "kept"]
    assert rows[1][3:] == ["–", "–", "–"]
    assert int(rows[3][5]) > 100

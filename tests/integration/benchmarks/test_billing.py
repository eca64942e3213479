"""The benchmark of billing runs, by its one command, and its totals are the records'."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(240)
async def test_a_month_is_closed_and_measured(tmp_path: Path) -> None:
    """Each piece of work once, usage by each dimension both ways; it fails where the invoice is not
    its records, late ones are not found, or roll-ups say something else."""
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.billing", "--quick", "--directory", str(tmp_path)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await run.communicate()
    assert run.returncode == 0, complaints.decode()[-2000:]
    lines = [line.strip("| ") for line in printed.decode().splitlines() if line.startswith("|")]
    rows = [line.split(" | ") for line in lines if not line.startswith("---")]
    assert [row[0] for row in rows] == [
        *("what", "roll-ups", "draft", "issue", "the next, 1,000 late", "void"),
        *("usage by", "tenant", "key", "model", "class", "provider", "day"),
    ]
    assert all(float(row[2]) > 0 for row in rows[1:6])
    assert os.listdir(tmp_path) == []

"""The benchmark of the console runs, by its one command, and asks for every page."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gateway.console.router import PAGES

ROOT = Path(__file__).parents[3]
NOT_ASKED = {"/{rest:path}", "/login"}


@pytest.mark.timeout(240)
async def test_every_page_is_asked_for_and_answers(tmp_path: Path) -> None:
    """It fails by itself where a page fails, or has a name in its path that it knows no id for."""
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.console", "--quick", "--directory", str(tmp_path)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await run.communicate()
    assert run.returncode == 0, complaints.decode()[-2000:]
    lines = [line.strip("| ") for line in printed.decode().splitlines() if line.startswith("| /")]
    rows = [line.split(" | ") for line in lines]
    asked = {row[0].partition("?")[0] for row in rows}
    pages = {path for page in PAGES if "GET" in page.http_methods for path in page.paths}
    assert len({path for path in asked if path.startswith("/console")}) == len(pages - NOT_ASKED)
    assert {row[1] for row in rows} == {"200", "303"}
    assert all(float(row[3]) >= 0 and float(row[6]) > 0 for row in rows)
    assert os.listdir(tmp_path) == []

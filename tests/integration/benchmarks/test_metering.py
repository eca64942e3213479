"""The benchmark of metering runs, by its one command, and shows every row that it promises."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


async def quick(*options: str) -> str:
    """What `python -m benchmarks.metering --quick` prints. Fails where its status is not 0."""
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.metering", "--quick", *options),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await run.communicate()
    assert run.returncode == 0, complaints.decode()[-2000:]
    return printed.decode()


def rows(printed: str) -> list[list[str]]:
    """The cells of every table's rows."""
    lines = (line.strip("| ") for line in printed.splitlines() if line.startswith("|"))
    return [line.split(" | ") for line in lines if not line.startswith("---")]


@pytest.mark.timeout(240)
async def test_every_part_is_measured(tmp_path: Path) -> None:
    """Each way beside its baseline; what was shipped is counted in Postgres, or it fails."""
    found = rows(await quick("--directory", str(tmp_path)))
    names = [row[0] for row in found]
    assert names[1:7] == ["one sync each", "journal"] * 3
    assert [row[1] for row in found[1:7]] == ["1", "1", "64", "64", "1,000", "1,000"]
    assert names[8:14] == ["none", "real", "added"] * 2
    assert names[15:19] == [
        "INSERT of rows in memory",
        "COPY of encoded rows",
        "shipper",
        "two shippers, two connections",
    ]
    assert len(found[20]) == len(found[19])
    positive = (*found[1:7], *found[8:10], *found[11:13], *found[15:19])  # not what was added
    measured = [cell for row in positive for cell in row[2:]]
    assert all(cell == "–" or float(cell.replace(",", "")) > 0 for cell in measured)
    assert os.listdir(tmp_path) == []


async def test_an_unknown_part_is_refused() -> None:
    """One line, before anything is measured."""
    with pytest.raises(AssertionError, match="--only takes journal, shipping, outage, request"):
        await quick("--only", "wishes")

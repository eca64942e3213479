"""A short run of metering under faults. The long one is in `make test-faults`."""

from pathlib import Path

import pytest
from metering_run.run import run
from metering_run.script import SHORT, plan

SEED = 1


@pytest.mark.timeout(180)
async def test_nothing_is_lost_or_double_in_a_short_run(tmp_path: Path) -> None:
    """M02, M22, M25: 300 requests while a gateway, a worker, Redis and Postgres are killed, each
    way is cut for three seconds and a disk is full."""
    outcome = await run(plan(SEED, SHORT), tmp_path)
    report = outcome.report()
    print(report)  # noqa: T201 - shown where it fails
    assert not outcome.findings, "\n".join(map(str, outcome.findings[:40]))

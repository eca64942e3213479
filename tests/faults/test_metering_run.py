"""*Metering that can be defended*, shown from the outside: 11,500 requests on three gateways, while
gateways, `weir journal ship`, Redis, Postgres and workers are killed at random, every way is cut
for 20 seconds, a disk is full, gateways stand still for longer than others wait, and one never
comes back. Journals, rows, engines' ledgers and clients must agree, and `weir reconcile` find
nothing.

Seeded: `WEIR_METERING_SEED`. A failure prints it.
"""

import os
from pathlib import Path

import pytest
from metering_run.run import run
from metering_run.script import FULL, plan

SEED = int(os.environ.get("WEIR_METERING_SEED", "20261130"))


@pytest.mark.fault
@pytest.mark.timeout(900)
async def test_nothing_is_lost_or_double_whatever_is_killed(tmp_path: Path) -> None:
    """M02, M03, M22, M25, D16, INV-5, INV-6: admitted = rows, none double, `engine_final` rows are
    the engines' own to the token, and every other difference has a reason."""
    outcome = await run(plan(SEED, FULL), tmp_path)
    report = outcome.report()
    print(report)  # noqa: T201 - shown where it fails
    assert not outcome.findings, "\n".join(map(str, outcome.findings[:40]))

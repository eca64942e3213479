"""*Limits that hold exactly*, shown from the outside: four gateways, eight tenants at five times
their limits, a gateway killed in the middle, limits edited; the engines are the witness.

Seeded: `WEIR_STORM_SEED` and `WEIR_STORM_SECONDS`, the length of the longer run. A failure prints
both.
"""

import os
from pathlib import Path

import pytest
from storm.run import WORKER_FLAGS, Plan, storm
from weir_dev import weir_dev

SEED = int(os.environ.get("WEIR_STORM_SEED", "20261130"))
SECONDS = float(os.environ.get("WEIR_STORM_SECONDS", "90"))
SYSTEM = (
    *("--engine", "simulated", "--workers", "2", "--worker-flags", WORKER_FLAGS),
    *("--gateways", "4"),
)


@pytest.mark.fault
@pytest.mark.timeout(300)
async def test_every_limit_holds_while_a_gateway_is_killed(tmp_path: Path) -> None:
    """C05, C03, R10, R21, R08, INV-1 to INV-5: 30 seconds, all within one trailing minute."""
    await weather(tmp_path, Plan(SEED, 30))


@pytest.mark.fault
@pytest.mark.timeout(SECONDS + 300)
async def test_every_limit_holds_for_longer(tmp_path: Path) -> None:
    """R08: minutes that slide, another seed, three kills."""
    await weather(tmp_path, Plan(SEED + 1, SECONDS, kills=(0.2, 0.5, 0.98)))


async def weather(folder: Path, plan: Plan) -> None:
    """Run a storm; print what came of it, and fail with all that must not be."""
    with weir_dev(folder, *SYSTEM, wait_s=180) as system:
        outcome = await storm(system, plan)
    report = outcome.report()
    print(report)  # noqa: T201 - shown where it fails
    assert [str(finding) for finding in outcome.findings] == [], report

"""A short storm on two gateways. The long ones, on four, are in `make test-faults`."""

from pathlib import Path

import pytest
from storm.run import WORKER_FLAGS, Plan, storm
from weir_dev import weir_dev


@pytest.mark.timeout(240)
async def test_a_short_storm_passes_no_limit(tmp_path: Path) -> None:
    """C05, R21: ten seconds at five times every limit, a gateway killed, limits edited."""
    options = ("--engine", "simulated", "--worker-flags", WORKER_FLAGS, "--gateways", "2")
    with weir_dev(tmp_path, *options) as system:
        outcome = await storm(system, Plan(seed=10, seconds=10))
    assert [str(finding) for finding in outcome.findings] == [], outcome.report()

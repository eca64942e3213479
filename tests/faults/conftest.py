"""A system that a test may break: each has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fallback_system import Fallback, fallback_system
from redis_faults import TwoGateways, two_gateways
from weir_dev import WeirDev, weir_dev


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[WeirDev]:
    """Two gateways over one simulated worker, for one test."""
    with weir_dev(tmp_path, "--engine", "simulated", "--gateways", "2") as system:
        yield system


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoGateways]:
    """One gateway with its store and one whose way there a test may break, short leases."""
    with two_gateways(tmp_path_factory.mktemp("redis-faults")) as started:
        yield started


@pytest.fixture(scope="session")
def fallback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fallback]:
    """One system with a canary as its hosted provider; each test chooses its workers."""
    with fallback_system(tmp_path_factory.mktemp("fallback")) as started:
        yield started

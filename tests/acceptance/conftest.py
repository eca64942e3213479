"""Whole systems, started once a session and shared; each test has a tenant of its own."""

from collections.abc import Iterator

import pytest
from weir_dev import WeirDev, weir_dev


@pytest.fixture(scope="session")
def simulated_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways over one simulated worker."""
    folder = tmp_path_factory.mktemp("simulated")
    with weir_dev(folder, "--engine", "simulated", "--gateways", "2") as system:
        yield system


@pytest.fixture
def simulated(simulated_system: WeirDev) -> WeirDev:
    """The shared system, seen by a tenant of this test's own, without limits."""
    return simulated_system.with_new_tenant()


@pytest.fixture(scope="session")
def local_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """What `make run` starts: a real model on this CPU."""
    with weir_dev(tmp_path_factory.mktemp("local")) as system:
        yield system

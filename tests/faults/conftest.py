"""A system that a test may break: each has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from weir_dev import WeirDev, weir_dev


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[WeirDev]:
    """Two gateways over one simulated worker, for one test."""
    with weir_dev(tmp_path, "--engine", "simulated", "--gateways", "2") as system:
        yield system

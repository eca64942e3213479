"""The systems that the SDKs speak to."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite(
    "sdk.checks", "sdk.failures", "sdk.retries", "sdk.rows", "sdk.streams"
)

from sdk import systems  # noqa: E402 - its assertions show what they compared
from weir_dev import WeirDev, weir_dev  # noqa: E402


@pytest.fixture(scope="session")
def sdk_simulated_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """One gateway over one simulated worker."""
    with systems.simulated(tmp_path_factory.mktemp("sdk-simulated")) as system:
        yield system


@pytest.fixture
def simulated(sdk_simulated_system: WeirDev) -> WeirDev:
    """The same, seen by a tenant of this test's own."""
    return sdk_simulated_system.with_new_tenant()


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """What `make run` starts: a real model on this CPU."""
    with weir_dev(tmp_path_factory.mktemp("sdk-local")) as system:
        yield system

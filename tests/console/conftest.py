"""Node with OpenAI's SDK, and the system that it speaks to."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite(
    "sdk.checks", "sdk.failures", "sdk.retries", "sdk.rows", "sdk.streams"
)

from console.node_sdk import NodeSdk, NodeUnusable, node_sdk  # noqa: E402 - rewritten assertions
from sdk import systems  # noqa: E402
from sdk.seen import Caller  # noqa: E402
from weir_dev import WeirDev, weir_dev  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def node() -> Iterator[NodeSdk]:
    """The SDK in one Node process. Without Node there is nothing to test, and that is a failure."""
    try:
        with node_sdk() as started:
            yield started
    except NodeUnusable as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture
def caller(node: NodeSdk) -> Caller:
    """The SDK as the shared checks use it."""
    return node.call


@pytest.fixture(scope="session")
def console_simulated_system(
    node: NodeSdk, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WeirDev]:
    """One gateway over one simulated worker."""
    assert node is not None
    with systems.simulated(tmp_path_factory.mktemp("console-simulated")) as system:
        yield system


@pytest.fixture
def simulated(console_simulated_system: WeirDev) -> WeirDev:
    """The same, seen by a tenant of this test's own."""
    return console_simulated_system.with_new_tenant()


@pytest.fixture(scope="session")
def local(node: NodeSdk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """What `make run` starts: a real model on this CPU."""
    assert node is not None
    with weir_dev(tmp_path_factory.mktemp("console-local")) as system:
        yield system

"""Node with OpenAI's SDK, a browser, and the systems that they speak to."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

pytest.register_assert_rewrite(
    "sdk.checks", "sdk.failures", "sdk.retries", "sdk.rows", "sdk.streams"
)

from console.browser import BrowserUnusable, Visitor, chromium, visitor  # noqa: E402
from console.node_sdk import NodeSdk, NodeUnusable, node_sdk  # noqa: E402 - rewritten assertions
from sdk import systems  # noqa: E402
from sdk.seen import Caller  # noqa: E402
from weir_dev import WeirDev, weir_dev  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs no browser comes first: while one is open Playwright's event loop runs in this
    thread, and there no test with a loop of its own can."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium. Without it there is nothing to test, and that is a failure."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(chromium())
        except BrowserUnusable as error:
            pytest.exit(str(error), returncode=1)
        yield started


@pytest.fixture(scope="session")
def console_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways over two simulated workers, with a month behind them."""
    options = ("--engine", "simulated", "--workers", "2", "--gateways", "2", "--history")
    with weir_dev(tmp_path_factory.mktemp("console"), *options) as system:
        yield system


@pytest.fixture
def visit(
    browser: Browser, console_system: WeirDev
) -> Callable[..., AbstractContextManager[Visitor]]:
    """Somebody with an empty browser at the first gateway."""

    def come(**options: Any) -> AbstractContextManager[Visitor]:
        return visitor(browser, console_system.gateway(), **options)

    return come

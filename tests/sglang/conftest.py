"""Two real SGLang servers and a Weir in front of each, started once a session.

`make test-sglang` installs SGLang into an environment of its own and names it in
WEIR_SGLANG_VENV.
"""

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from sglang_server import Behind, SglangServer, running_sglang
from weir_dev import WeirDev, weir_dev

HERE = Path(__file__).parent
DRAIN_MS = "2500"
"""A decoding step takes milliseconds on a GPU and up to a second here: what was used until an abort
is said at the end of one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Servers start within a fixture's time, not a test's; tests that kill one run last."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(120, func_only=True))
    items.sort(key=lambda item: item.get_closest_marker("fault") is not None)


@pytest.fixture(scope="session")
def sglang_python() -> Path:
    """The Python of SGLang's environment."""
    named = os.environ.get("WEIR_SGLANG_VENV")
    assert named, "WEIR_SGLANG_VENV is not set: run `make test-sglang`"
    return Path(named).absolute() / "bin" / "python"


@pytest.fixture(scope="session")
def engines(
    sglang_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SglangServer, SglangServer]]:
    """The main server, and a tight one: one running place, a small queue, a small pool."""
    with running_sglang(sglang_python, tmp_path_factory.mktemp("sglang")) as pair:
        yield pair


@pytest.fixture(scope="session")
def systems(
    engines: tuple[SglangServer, SglangServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WeirDev, ...]]:
    """A Weir in front of each."""
    starting: list[AbstractContextManager[WeirDev]] = [
        weir_dev(tmp_path_factory.mktemp("weir"), "--engine", engine.url) for engine in engines
    ]
    with (
        ExitStack() as stack,
        pytest.MonkeyPatch.context() as environment,
        ThreadPoolExecutor(len(starting)) as pool,
    ):
        environment.setenv("WEIR_ABORT_DRAIN_MS", DRAIN_MS)
        yield tuple(pool.map(stack.enter_context, starting))


@pytest.fixture
def main(engines: tuple[SglangServer, SglangServer], systems: tuple[WeirDev, ...]) -> Behind:
    """The main server, seen by a new tenant without limits."""
    return Behind(systems[0].with_new_tenant(), engines[0])


@pytest.fixture
def tight(engines: tuple[SglangServer, SglangServer], systems: tuple[WeirDev, ...]) -> Behind:
    """The tight server, seen by a new tenant without limits."""
    return Behind(systems[1].with_new_tenant(), engines[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the engines last logged."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for name in ("main", "tight"):
            seen = item.funcargs.get(name)
            if isinstance(seen, Behind):
                report.sections.append((f"SGLang's log ({name})", seen.engine.tail))
    return report

"""Real SGLang passes what the simulated worker has to: the checks are true."""

import pytest
from sglang_server import MODEL, TIGHT_POOL_TOKENS, TIGHT_QUEUE, SglangServer

pytest.register_assert_rewrite("conformance")

from conformance.engine import Engine  # noqa: E402 - its assertions show what they compared
from conformance.table import ROOMY, TIGHT, Check, checks_of, named, run  # noqa: E402


@pytest.mark.parametrize("check", checks_of(ROOMY), ids=named)
def test_roomy(engines: tuple[SglangServer, SglangServer], check: Check) -> None:
    """The main server."""
    run(check, Engine(engines[0].url, MODEL, 4096, 16384, 16, None))


@pytest.mark.parametrize("check", checks_of(TIGHT), ids=named)
def test_tight(engines: tuple[SglangServer, SglangServer], check: Check) -> None:
    """The tight one."""
    run(check, Engine(engines[1].url, MODEL, 2048, TIGHT_POOL_TOKENS, 1, TIGHT_QUEUE))

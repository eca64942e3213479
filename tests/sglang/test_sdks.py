"""Both of OpenAI's SDKs on real SGLang: the same rows as on every other engine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

pytest.register_assert_rewrite("sdk.checks", "sdk.rows")

from console.node_sdk import NodeSdk, NodeUnusable, node_sdk  # noqa: E402
from sdk.python_sdk import call_sync  # noqa: E402
from sdk.rows import (  # noqa: E402 - its assertions show what they compared
    Form,
    Refused,
    Row,
    run_row,
)
from sdk.seen import Caller  # noqa: E402
from sdk.table import ROWS  # noqa: E402
from sglang_server import Behind  # noqa: E402

BLIND = {"image as data": Refused("messages", "invalid_value")}
"""What this model, which reads text alone, makes of rows that a seeing one passes."""
each_row = pytest.mark.parametrize(
    "row",
    [replace(row, sglang=BLIND.get(row.name, row.sglang)) for row in ROWS],
    ids=lambda row: row.name.replace(" ", "-"),
)


@pytest.fixture(scope="session")
def node() -> Iterator[NodeSdk]:
    """Node with OpenAI's SDK, in a process of its own."""
    try:
        with node_sdk() as sdk:
            yield sdk
    except NodeUnusable as error:
        pytest.fail(str(error), pytrace=False)


@each_row
def test_a_row_of_the_table_in_python(main: Behind, row: Row) -> None:
    """Whole, where the row can be. Every form in both SDKs is tested on quicker engines."""
    run(main, row, row.forms[:1], call_sync)


@each_row
def test_a_row_of_the_table_in_node(main: Behind, node: NodeSdk, row: Row) -> None:
    """Streamed, where the row can be."""
    run(main, row, row.forms[-1:], node.call)


def run(behind: Behind, row: Row, forms: Sequence[Form], caller: Caller) -> None:
    weir = behind.weir
    url = weir.gateway() + "/v1"
    run_row(row, url, weir.key(), weir.model, "sglang", forms=forms, caller=caller)

"""Both of OpenAI's SDKs on real SGLang: the same rows as on every other engine."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("sdk.checks", "sdk.rows")

from console.node_sdk import NodeSdk, NodeUnusable, node_sdk  # noqa: E402
from sdk.rows import Row, run_row  # noqa: E402 - its assertions show what they compared
from sdk.table import ROWS  # noqa: E402
from sglang_server import Behind  # noqa: E402

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))


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
    """Whole and streamed, as docs/sdks.md says."""
    run_row(row, main.weir.gateway() + "/v1", main.weir.key(), main.weir.model, "sglang")


@each_row
def test_a_row_of_the_table_in_node(main: Behind, node: NodeSdk, row: Row) -> None:
    """Streamed where the row can be: what the two SDKs read differently."""
    forms = row.forms[-1:]
    run_row(
        row,
        main.weir.gateway() + "/v1",
        main.weir.key(),
        main.weir.model,
        "sglang",
        forms=forms,
        caller=node.call,
    )

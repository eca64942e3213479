"""Every row of docs/sdks.md with the Node SDK."""

import pytest
from sdk import rows
from sdk.rows import Row
from sdk.seen import Caller
from sdk.systems import base_url
from sdk.table import ROWS
from weir_dev import WeirDev

ON_THE_MODEL = (
    "chat, whole",
    "chat, streamed",
    "include_usage on",
    "stop",
    "n",
    "logprobs",
    "json_schema",
    "regex",
    "tools",
)
"""Rows whose answer the simulated engine cannot give, and a few plain ones."""


def named(row: Row) -> str:
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_simulated(console_simulated_system: WeirDev, row: Row, caller: Caller) -> None:
    """S02 among them: whole and streamed."""
    system = console_simulated_system
    rows.run_row(row, base_url(system), system.key(), system.model, "simulated", caller=caller)


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ON_THE_MODEL], ids=named)
def test_local(local: WeirDev, row: Row, caller: Caller) -> None:
    """On a real model, each row in one of its forms."""
    rows.run_row(
        row,
        base_url(local),
        local.key(),
        local.model,
        "local",
        forms=row.forms_on("local"),
        caller=caller,
    )

"""Every row of docs/sdks.md on the engines that run here, with the Python SDK."""

from typing import Any

import pytest
from sdk import python_sdk, rows
from sdk.rows import EngineName, Row
from sdk.systems import base_url
from sdk.table import ROWS
from weir_dev import WeirDev

from gateway.wire.fields import PRIVILEGED_FIELDS

ASYNC = ("chat, whole", "chat, streamed", "include_usage on", "n", "completions, a list", "rid")


def named(row: Row) -> str:
    return row.name


def run(row: Row, system: WeirDev, engine: EngineName, **how: Any) -> None:
    rows.run_row(row, base_url(system), system.key(), system.model, engine, **how)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_simulated(sdk_simulated_system: WeirDev, row: Row) -> None:
    """S02 among them: whole and streamed."""
    run(row, sdk_simulated_system, "simulated")


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ASYNC], ids=named)
def test_async(sdk_simulated_system: WeirDev, row: Row) -> None:
    """The async SDK sees the same."""
    run(row, sdk_simulated_system, "simulated", caller=python_sdk.call_async)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_local(local: WeirDev, row: Row) -> None:
    """On a real model, each row in one of its forms."""
    run(row, local, "local", forms=row.forms_on("local"))


def test_every_privileged_field_is_refused(sdk_simulated_system: WeirDev) -> None:
    """INV-12: whatever its value."""
    for field in sorted(PRIVILEGED_FIELDS):
        row = Row(field, "", {"extra_body": {field: None}}, simulated=rows.Refused(field))
        run(row, sdk_simulated_system, "simulated", forms=("whole",))

"""Every row of docs/sdks.md on the engines that run here, with the Python SDK."""

import pytest
from sdk import python_sdk, rows
from sdk.rows import Form, Row
from sdk.systems import base_url
from sdk.table import ROWS
from weir_dev import WeirDev

from gateway.wire.fields import PRIVILEGED_FIELDS

ASYNC = ("chat, whole", "chat, streamed", "include_usage on", "n", "completions, a list", "rid")


def named(row: Row) -> str:
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_simulated(simulated: WeirDev, row: Row) -> None:
    """S02 among them: whole and streamed."""
    rows.run_row(row, base_url(simulated), simulated.key(), simulated.model, "simulated")


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ASYNC], ids=named)
def test_async(simulated: WeirDev, row: Row) -> None:
    """The async SDK sees the same."""
    rows.run_row(
        row,
        base_url(simulated),
        simulated.key(),
        simulated.model,
        "simulated",
        caller=python_sdk.call_async,
    )


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_local(local: WeirDev, row: Row) -> None:
    """On a real model, each row in one of its forms."""
    forms: tuple[Form, ...] = row.forms_on("local")
    rows.run_row(row, base_url(local), local.key(), local.model, "local", forms=forms)


@pytest.mark.parametrize("field", sorted(PRIVILEGED_FIELDS))
def test_every_privileged_field_is_refused(simulated: WeirDev, field: str) -> None:
    """INV-12: whatever its value."""
    for value in (None, 1):
        row = Row(field, "", {"extra_body": {field: value}}, simulated=rows.Refused(field))
        rows.run_row(
            row,
            base_url(simulated),
            simulated.key(),
            simulated.model,
            "simulated",
            forms=("whole",),
        )

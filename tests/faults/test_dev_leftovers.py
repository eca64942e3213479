"""`weir dev` that starts with fewer gateways than before."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from shipping import serve
from usage_examples import an_admission
from weir_dev import WeirDev, weir_dev

from gateway.adapters.journal import Journal

pytestmark = pytest.mark.fault
KEY = "key-1"
"""Of usage examples, none of the system's own."""


async def rows(system: WeirDev) -> dict[UUID, str]:
    """Outcomes of what was written into the journal while nothing ran."""
    found = await system.sql(
        "SELECT request_id, outcome FROM usage_records WHERE api_key_id = $1", KEY
    )
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row[1] for row in found}


async def test_what_a_gateway_left_comes_home_without_it(tmp_path: Path) -> None:
    """INV-5: rows that a gateway had not shipped are there after a start without it, those that
    ran as gateway_lost; and it is not waited for."""
    options = ("--engine", "simulated")
    with weir_dev(tmp_path, *options, "--gateways", "2") as system:
        assert system.chat(gateway=1).status == 200
    journal = await Journal.open(tmp_path / "journal" / "gateway-1")
    records = await serve(journal, 30)
    running = an_admission()
    await journal.admitted(running)
    await journal.close()
    expected = {record.request_id: "completed" for record in records}
    expected[running.request_id] = "gateway_lost"
    with weir_dev(tmp_path, *options) as system:
        async with asyncio.timeout(30):
            while await rows(system) != expected:  # noqa: ASYNC110 - SQL
                await asyncio.sleep(0.05)
    again = await Journal.open(tmp_path / "journal" / "gateway-1")
    assert again.recovered.lost == ()
    await again.close()

"""A gateway process whose disk is full, read-only or broken (DESIGN 10)."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from disk_gateway import DiskGateway, disk_gateway, launched
from servers import eventually
from weir_dev import Reply, WeirDev, weir_dev

from gateway.adapters.journal import Journal

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """A system beside which each test starts a gateway with a disk of its own."""
    with weir_dev(tmp_path_factory.mktemp("disk"), "--engine", "simulated") as started:
        yield started


def ask(system: WeirDev, gateway: DiskGateway, **fields: Any) -> Reply:
    """A chat completion through that gateway."""
    body = system.body(**fields)
    return system.request("POST", gateway.url + "/v1/chat/completions", body, token=system.key())


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("fault", ["ENOSPC write", "EROFS write", "EIO sync"])
async def test_what_cannot_be_billed_is_not_served(
    system: WeirDev, tmp_path: Path, fault: str
) -> None:
    """INV-5: what runs goes on and its row is in Postgres, sent there directly; new requests are
    503 `metering_unavailable`, `/readyz` says `journal`; with the disk well it serves again."""
    with disk_gateway(system, tmp_path / "gateway") as gateway:
        before = ask(system, gateway, max_tokens=2)
        assert before.status == 200
        running = asyncio.create_task(asyncio.to_thread(ask, system, gateway, max_tokens=400))
        await eventually(lambda: system.running() > 0, what="the request that runs")
        gateway.fail(fault)
        refused = await asyncio.to_thread(ask, system, gateway, max_tokens=2)
        assert (refused.status, refused.error["code"]) == (503, "metering_unavailable")
        assert gateway.condition(system) == (503, ["journal"])
        went_on = await running
        assert went_on.status == 200
        assert (await system.record(went_on.headers["x-request-id"]))["outcome"] == "completed"
        gateway.fail()
        until(lambda: gateway.condition(system)[0] == 200, "ready again")
        after = ask(system, gateway, max_tokens=2)
        assert after.status == 200
        for served in (before, after):
            await system.record(served.headers["x-request-id"])
        rows = await system.sql(
            "SELECT 1 FROM usage_records WHERE request_id = $1::uuid",
            refused.headers["x-request-id"],
        )
        assert rows == []
    assert gateway.process.returncode == 0
    journal = await Journal.open(gateway.journal)
    assert journal.recovered.lost == ()
    await journal.close()


@pytest.mark.parametrize("fault", ["EROFS create", "ENOSPC write", "EIO sync"])
def test_a_start_on_a_bad_disk_is_one_line_and_status_1(
    system: WeirDev, tmp_path: Path, fault: str
) -> None:
    """It does not serve, and says why without a traceback."""
    gateway = launched(system, tmp_path, fault)
    assert gateway.process.wait(60) == 1
    said = gateway.log.read_text().splitlines()
    assert said[-1].startswith("weir: journal directory: ")
    assert "Traceback" not in gateway.log.read_text()

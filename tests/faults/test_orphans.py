"""Gateways that are gone for a while or for good, seen by the others: paused, cut off from Redis,
killed, their disks lost. What is gone here is so after 3 s."""

import asyncio
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from breakable_store import ProxyThread
from disk_gateway import DiskGateway, disk_gateway
from weir_dev import Json, WeirDev, weir_dev

from gateway.adapters.journal.identity import read_identity
from gateway.adapters.redis import connect_redis
from gateway.adapters.second_copy_records import Copies

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

GONE = {"WEIR_GATEWAY_GONE_MS": "3000"}
REAPED_S = 40.0


class Seen(WeirDev):
    """The system with the gateway that a test breaks as its second one."""

    other: str = ""

    @property
    def ready(self) -> Json:
        found = super().ready
        return {**found, "gateways": [*found["gateways"], self.other]}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """One gateway, which reaps, over one simulated worker."""
    folder = tmp_path_factory.mktemp("orphans")
    with weir_dev(folder, "--engine", "simulated", environment=GONE) as started:
        yield started


@asynccontextmanager
async def streaming(system: WeirDev, gateway: DiskGateway) -> AsyncIterator["Stream"]:
    """A long stream through that gateway, slower than usual, whose tokens so far were told."""
    slow = {"kind": "slow", "after_tokens": 1, "delay_ms": 50, "count": 1}
    system.worker("/weir/faults", slow)
    seen = Seen(system.data_dir, system.process)
    seen.other = gateway.url
    with seen.open_chat(gateway=1, max_tokens=8000, stream=True) as connection:
        stream = Stream(connection)
        stream.read(until_s=1)
        await told_of(system, gateway, UUID(stream.request_id))
        yield stream


class Stream:
    """What has come of it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""

    def read(self, *, until_s: float) -> int:
        """Read for so long; how many bytes came. Some must."""
        before, deadline = len(self._received), time.monotonic() + until_s
        while time.monotonic() < deadline:
            piece = self._connection.recv(65536)
            assert piece
            self._received += piece
        assert b'"content":' in self._received
        return len(self._received) - before

    @property
    def request_id(self) -> str:
        """The gateway's own."""
        return self._received.split(b"x-request-id: ")[1].split(b"\r\n")[0].decode()


async def row_of(system: WeirDev, request_id: str) -> asyncpg.Record:
    """Its only row, whole."""
    (row,) = await system.sql("SELECT * FROM usage_record WHERE request_id = $1::uuid", request_id)
    return row


async def provisional_row(system: WeirDev, request_id: str) -> asyncpg.Record:
    """The row that another gateway wrote."""
    await system.record(request_id, within_s=REAPED_S)
    row = await row_of(system, request_id)
    assert (row["outcome"], row["final"]) == ("gateway_lost", False)
    assert set(row["usage_flags"]) == {"reaped", "end_unknown"}
    assert (row["billable"], row["cost_pico"], row["boot"]) == (False, 0, None)
    assert row["output_tokens"] > 0 < row["list_cost_pico"]
    return row


async def final_row(system: WeirDev, request_id: str) -> asyncpg.Record:
    """The row once it is final."""
    deadline = time.monotonic() + 30
    while not (row := await row_of(system, request_id))["final"]:
        assert time.monotonic() < deadline, dict(row)
        await asyncio.sleep(0.05)
    return row


def assert_its_own(system: WeirDev, row: asyncpg.Record, provisional: asyncpg.Record) -> None:
    """It is the gateway's own account, to the engine's last token."""
    assert (row["outcome"], row["usage_source"]) == ("client_cancelled", "engine_final")
    assert "reaped" not in row["usage_flags"]
    assert row["boot"] is not None
    assert row["gateway_id"] == provisional["gateway_id"]
    entry = system.ledger()[str(row["request_id"]).replace("-", "")]
    assert row["output_tokens"] == entry["completion_tokens"] >= provisional["output_tokens"]
    assert row["billable"]
    assert row["cost_pico"] > 0


async def last_seen(system: WeirDev) -> datetime:
    """When any gateway was last written down."""
    (latest,) = await system.sql("SELECT max(seen_at) AS at FROM gateway_seen")
    at: datetime = latest["at"]
    return at


async def assert_it_stays(system: WeirDev, row: asyncpg.Record) -> None:
    """Reapers that look again change nothing: each of their turns writes down who was seen."""
    turns, seen = 0, await last_seen(system)
    deadline = time.monotonic() + 60
    while turns < 2:
        assert time.monotonic() < deadline, "no reaper looks again"
        await asyncio.sleep(0.05)
        if (now := await last_seen(system)) > seen:
            turns, seen = turns + 1, now
    assert await row_of(system, str(row["request_id"])) == row
    assert await system.sql("SELECT * FROM usage_late") == []


async def test_a_gateway_back_from_a_long_pause(system: WeirDev, tmp_path: Path) -> None:
    """INV-5: stopped for longer than it takes to be gone, with a stream open: a provisional row; it
    goes on, the stream too, and its own account replaces the row once."""
    with disk_gateway(system, tmp_path / "gateway", **GONE) as gateway:
        async with streaming(system, gateway) as stream:
            gateway.process.send_signal(signal.SIGSTOP)
            try:
                provisional = await provisional_row(system, stream.request_id)
            finally:
                gateway.process.send_signal(signal.SIGCONT)
            assert stream.read(until_s=1) > 0
        row = await final_row(system, stream.request_id)
        assert_its_own(system, row, provisional)
        assert system.request("GET", gateway.url + "/readyz").status == 200
        await assert_it_stays(system, row)


async def test_a_gateway_cut_off_from_redis_that_runs_on(system: WeirDev, tmp_path: Path) -> None:
    """INV-5: taken for gone while it serves; its row replaces the provisional one while it is still
    cut off, and once it is back its copies go."""
    proxy = ProxyThread(system.ready["redis_url"])
    settings = {**GONE, "WEIR_REDIS_URL": proxy.proxy.url}
    try:
        with disk_gateway(system, tmp_path / "gateway", **settings) as gateway:
            async with streaming(system, gateway) as stream:
                proxy.refuse()
                provisional = await provisional_row(system, stream.request_id)
                assert stream.read(until_s=1) > 0
            row = await final_row(system, stream.request_id)
            assert_its_own(system, row, provisional)
            await assert_it_stays(system, row)
            proxy.run(proxy.proxy.listen)
            proxy.heal()
            await no_copies(system, row["gateway_id"])
            assert await row_of(system, stream.request_id) == row
    finally:
        proxy.close()


async def test_a_gateway_killed_with_its_disk(system: WeirDev, tmp_path: Path) -> None:
    """M22, D16: the row comes from the copy, with the tokens last told: no more than the engine
    counted."""
    with disk_gateway(system, tmp_path / "gateway", **GONE) as gateway:
        async with streaming(system, gateway) as stream:
            gateway.process.kill()
            gateway.process.wait()
            shutil.rmtree(gateway.journal)
        row = await provisional_row(system, stream.request_id)
    entry = system.ledger()[stream.request_id.replace("-", "")]
    assert 0 < row["output_tokens"] <= entry["completion_tokens"]
    seen: Any = await system.sql(
        "SELECT * FROM gateway_seen WHERE gateway_id = $1", row["gateway_id"]
    )
    assert [each["closed_at"] for each in seen] == [None]


async def test_a_killed_gateway_that_starts_again(system: WeirDev, tmp_path: Path) -> None:
    """M01, M25: its own account, final at once, has the tokens that were last told too."""
    with disk_gateway(system, tmp_path / "gateway") as gateway:
        async with streaming(system, gateway) as found:
            gateway.process.kill()
            gateway.process.wait()
    with disk_gateway(system, tmp_path / "gateway"):
        await system.record(found.request_id, within_s=20)
        row = await final_row(system, found.request_id)
    entry = system.ledger()[found.request_id.replace("-", "")]
    assert (row["outcome"], row["usage_source"]) == ("gateway_lost", "counted")
    assert 0 < row["output_tokens"] <= entry["completion_tokens"]
    assert row["boot"] is not None
    assert row["cost_pico"] == 0 < row["list_cost_pico"]


async def told_of(system: WeirDev, gateway: DiskGateway, request_id: UUID) -> None:
    """Until the store was told of tokens of that request."""
    identity = read_identity(gateway.journal)
    assert identity is not None
    store = connect_redis(system.ready["redis_url"], timeout_ms=1_000)
    deadline = time.monotonic() + 20
    while not any(
        copy.output_tokens for copy in await Copies(store).some(identity.gateway_id, [request_id])
    ):
        assert time.monotonic() < deadline, "no tokens were told"
        await asyncio.sleep(0.05)
    await store.aclose()


async def no_copies(system: WeirDev, gateway_id: str) -> None:
    """Until none is left."""
    store = connect_redis(system.ready["redis_url"], timeout_ms=1_000)
    deadline = time.monotonic() + 20
    while names := await Copies(store).names(gateway_id):
        assert time.monotonic() < deadline, names
        await asyncio.sleep(0.1)
    await store.aclose()

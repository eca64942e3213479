"""Books of one gateway, kept by a real journal and shipper, and `weir reconcile` on them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from shipping import DRAIN_MS, query, serve
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from weir_command import Weir

from billing.domain.usage_record import UsageRecord
from billing.postgres.rollups import roll_up
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper

Json = dict[str, Any]


class Books:
    """A gateway's journal whose records are in Postgres, and the gateway at rest."""

    def __init__(self, engine: AsyncEngine, weir: Weir, directory: Path) -> None:
        self.engine = engine
        self.weir = weir
        self.directory = directory
        self.records: list[UsageRecord] = []
        self.boot = 0
        self.gateway_id = ""
        self.since = datetime.now(UTC) - timedelta(minutes=30)

    async def serve(self, count: int) -> None:
        """One life of the gateway, in which so many requests are served and shipped."""
        journal = await Journal.open(self.directory)
        self.boot, self.gateway_id = journal.boot, journal.gateway_id
        shipper = Shipper(self.engine, journal)
        shipper.start()
        self.records += await serve(journal, count)
        assert await shipper.drain(DRAIN_MS)
        await shipper.stop()
        await journal.close()

    async def roll_up(self) -> None:
        """Until every roll-up is made."""
        while True:
            async with self.engine.begin() as db:
                if not await roll_up(db):
                    return

    async def sql(self, statement: str, **values: object) -> None:
        """Change something by hand."""
        async with self.engine.begin() as db:
            await db.execute(text(statement), values)

    async def query(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return await query(self.engine, statement)

    async def reconcile(self, *arguments: str) -> Json:
        """What `weir reconcile --json` says, whose exit status must say the same."""
        given = ("reconcile", "--from", self.since.isoformat(), *arguments, "--json")
        status, out, err = await asyncio.to_thread(self.weir.run, *given)
        assert err == "", err
        view = msgspec.json.decode(out, type=dict[str, Any])
        assert status == (0 if view["ok"] else 1)
        return view

    async def found(self, *arguments: str) -> dict[str, list[Json]]:
        """The findings of each check that has any."""
        view = await self.reconcile(*arguments)
        return {each["check"]: each["findings"] for each in view["checks"] if each["findings"]}


@pytest.fixture
async def books(
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Books]:
    """Six requests of one gateway, over two lives; no Redis."""
    monkeypatch.setenv("WEIR_DATABASE_URL", database_url)
    monkeypatch.delenv("WEIR_REDIS_URL", raising=False)
    engine = async_engine(database_url)
    made = Books(engine, Weir(capsys), tmp_path / "journal")
    made.directory.mkdir()
    await made.serve(4)
    await made.serve(2)
    await made.roll_up()
    yield made
    await engine.dispose()

"""A dead gateway's journal, taken over by no gateway: `weir journal`."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from shipping import ids, query, rows, serve
from sqlalchemy.ext.asyncio import AsyncEngine
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission
from weir_command import Weir

from billing.postgres.gateways_seen import Seen, note_seen
from gateway.adapters.births import Births, history_in
from gateway.adapters.journal import Journal
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.second_copy import copies_key
from gateway.administration import Administration
from gateway.domain.admission import Demand, Granted
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits

CHILD = Path(__file__).parents[2] / "journal_process.py"
SCOPES: tuple[ScopeLimits, ...] = scopes_of(
    a_tenant(Limits(max_sequences=5, tpm=100_000)), a_key(), "smollm2-135m"
)


class System:
    """The stores, a tenant, and `weir` commands on them."""

    def __init__(self, engine: AsyncEngine, redis: RedisClient, weir: Weir) -> None:
        self.engine = engine
        self.redis = redis
        self.births = Births(redis, history_in(engine))
        self.ledger = RedisLedger(redis, ttl_ms=60_000, timeout_ms=1_000, births=self.births)
        self.gateways = Gateways(redis, self.births)
        self.weir = weir

    async def admit(self, journal: Journal) -> Admitted:
        """A request with a lease, as its gateway admitted it."""
        admission = an_admission(api_key_id=a_key().id)
        demand = Demand(admission.request_id.hex, 1, 112, 112)
        decision = await self.ledger.acquire("acme", a_key().id, admission.model, demand, SCOPES)
        assert isinstance(decision, Granted)
        await journal.admitted(admission)
        return admission

    async def held(self) -> tuple[int, int]:
        """Sequences and tokens that count against the tenant."""
        uses = await self.ledger.observe("acme", SCOPES)
        return uses[0].sequences, uses[0].tokens

    async def ask(self, command: str, key: str, *arguments: str) -> object:
        """What the store answers."""
        script = self.redis.register_script(
            f"return redis.call('{command}', KEYS[1], unpack(ARGV))"
        )
        return await script([key], arguments)

    async def ok(self, *arguments: str) -> dict[str, object]:
        """The JSON of a command that must succeed."""
        found: dict[str, object] = await asyncio.to_thread(self.weir.json, *arguments)
        return found


@pytest.fixture
async def system(
    database_url: str,
    redis_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[System]:
    """A system in which the tenant acme exists."""
    monkeypatch.setenv("WEIR_DATABASE_URL", database_url)
    monkeypatch.setenv("WEIR_REDIS_URL", redis_url)
    engine, redis = async_engine(database_url), connect_redis(redis_url, timeout_ms=1_000)
    made = System(engine, redis, Weir(capsys))
    await Administration(engine).create_tenant("test", "acme", name="Acme")
    await made.births.open()
    yield made
    await redis.aclose()
    await engine.dispose()


async def outcomes(engine: AsyncEngine) -> dict[UUID, str]:
    found = await query(engine, "SELECT request_id, outcome FROM usage_records")
    return {row[0]: row[1] for row in found}


async def test_all_that_a_dead_gateway_owes_is_made_good_once(
    system: System, tmp_path: Path
) -> None:
    """Rows, gateway_lost, leases and reservations, its place in the list; again: nothing more."""
    journal = await Journal.open(tmp_path)
    running, ended = await system.admit(journal), await system.admit(journal)
    await journal.ended(a_record(ended))
    await system.gateways.tell(journal.gateway_id, 0)
    seen = Seen(journal.gateway_id, journal.boot, 3, 0, 1, 1_000)
    async with system.engine.begin() as db:
        await note_seen(db, [seen])
    assert await system.held() == (2, 224)
    copies = copies_key(journal.gateway_id)
    for name in (running.request_id.hex, ended.request_id.hex):
        await system.ask("HSET", copies, name, "A")
    await journal.close()  # nothing of it was shipped or settled
    adopted = await system.ok("journal", "ship", str(tmp_path))
    assert adopted == {
        "gateway_id": journal.gateway_id,
        "gateway_lost": 1,
        "shipped": 2,
        "dead_letters": 0,
        "missing": 0,
        "unshipped": 0,
        "unsettled": 0,
        "copies": 0,
        "why": None,
        "whole": True,
    }
    expected = {running.request_id: "gateway_lost", ended.request_id: "completed"}
    assert await outcomes(system.engine) == expected
    assert await system.ask("HKEYS", copies) == []
    # The one that ran is charged as reserved, the other as it was.
    assert await system.held() == (0, 112 + 32)
    assert await system.gateways.waited_for(await system.gateways.ask()) == ()
    assert await query(system.engine, "SELECT closed_at <= now() FROM gateway_seen") == [(True,)]
    again = await system.ok("journal", "ship", str(tmp_path))
    assert (again["shipped"], again["gateway_lost"], again["whole"]) == (0, 0, True)
    assert await outcomes(system.engine) == expected


async def test_copies_that_the_disk_does_not_know_are_left(system: System, tmp_path: Path) -> None:
    """INV-5: a directory that was restored from a backup is no reason to forget the rest."""
    journal = await Journal.open(tmp_path)
    (record,) = await serve(journal, 1)
    await journal.close()
    copies, newer = copies_key(journal.gateway_id), uuid4().hex
    for name in (record.request_id.hex, newer):
        await system.ask("HSET", copies, name, "E")
    adopted = await system.ok("journal", "ship", str(tmp_path))
    assert (adopted["copies"], adopted["whole"]) == (1, True)
    assert await system.ask("HGET", copies, newer) == b"E"
    assert await system.ask("HGET", copies, record.request_id.hex) is None


async def test_many_adopters_of_one_journal_are_one(system: System, tmp_path: Path) -> None:
    """A killed process's journal, taken over by four at once: one has it, the others say so or find
    nothing left, and each request is one row."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    acknowledged = [(await process.stdout.readline()).split() for _ in range(600)]
    process.kill()
    await process.communicate()
    adopters = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "journal", "ship", str(tmp_path),
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        )
        for _ in range(4)
    ]  # fmt: skip
    said = [await adopter.communicate() for adopter in adopters]
    refused = [err for adopter, (_, err) in zip(adopters, said, strict=True) if adopter.returncode]
    assert len(refused) < 4
    assert set(refused) <= {b"weir: journal directory is in use by another gateway\n"}
    found = await rows(system.engine)
    assert set(found.values()) == {1}
    for word, request_id in acknowledged:
        if word == b"ended":
            assert found[UUID(request_id.decode())] == 1


async def test_a_journal_in_use_is_left_alone(system: System, tmp_path: Path) -> None:
    """Status 1 and one line while its gateway lives; the list shows it, with what is not shipped,
    and disturbs nothing."""
    journal = await Journal.open(tmp_path / "gateway-0")
    dead = await Journal.open(tmp_path / "gateway-1")
    await serve(dead, 3)
    await dead.close()
    (tmp_path / "other").mkdir()
    refused = await asyncio.to_thread(
        system.weir.refused, "journal", "ship", str(journal.directory), status=1
    )
    assert "in use" in refused
    listed = await system.ok("journal", "list", str(tmp_path))
    assert isinstance(listed["items"], list)
    seen = [(item["gateway_id"], item["in_use"], item["unshipped"]) for item in listed["items"]]
    assert seen == [(journal.gateway_id, True, 0), (dead.gateway_id, False, 6)]
    records = await serve(journal, 2)
    await journal.close()
    await system.ok("journal", "ship", str(journal.directory))
    assert await rows(system.engine) == ids(records)


async def test_where_no_journal_lies_none_is_made(system: System, tmp_path: Path) -> None:
    """A wrong directory is named, and stays as it was."""
    said = await asyncio.to_thread(system.weir.refused, "journal", "ship", str(tmp_path))
    assert "no journal" in said
    assert not await asyncio.to_thread(os.listdir, tmp_path)

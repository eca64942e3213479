"""How complete usage is, asked of real stores."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from postgres_proxy import postgres_proxy
from shipping import serve
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.postgres.gateways_seen import Seen, note_seen
from billing.postgres.journals_behind import close_if_shipped
from billing.postgres.usage_records import GroupBy, UsageFilter
from gateway.adapters import completeness
from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways, Presence
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.shipper import Shipper
from gateway.adapters.usage_reports import UsageReports
from gateway.domain import completeness as rules
from gateway.domain.completeness import NOT_KNOWN
from gateway.domain.presence import Heartbeat

SHIPPED = Heartbeat(1, 9, 0, 9)


class Born:
    """The store never lost anything, or began at `ms`."""

    def __init__(self) -> None:
        self.ms = 0

    async def born_ms(self, tenant_id: str) -> int:
        """Of every tenant."""
        return self.ms


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of an empty store."""
    client = connect_redis(redis_url, timeout_ms=1_000)
    yield client
    await client.aclose()


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """A pool on a database of this test's own."""
    engine = async_engine(database_url, pool_size=2)
    yield engine
    await engine.dispose()


@pytest.fixture
def born() -> Born:
    """Whose birth the store tells."""
    return Born()


@pytest.fixture
def gateways(store: RedisClient, born: Born) -> Gateways:
    """The list."""
    return Gateways(store, born)


async def look(gateways: Gateways, postgres: AsyncEngine) -> Found:
    """A first look."""
    return await UsageCompleteness(gateways, postgres).look()


async def done(postgres: AsyncEngine, statement: str) -> None:
    """Change the database."""
    async with postgres.begin() as db:
        await db.execute(text(statement))


async def test_all_have_shipped(gateways: Gateways, postgres: AsyncEngine) -> None:
    """Complete through the instant that all have shipped through; one that lags, at that."""
    instant_ms = await gateways.ask()
    await gateways.tell("a", instant_ms, SHIPPED)
    await gateways.tell("b", instant_ms - 50, SHIPPED)
    found = await look(gateways, postgres)
    assert found.completeness.through_ms == instant_ms - 50
    assert found.covers(None)
    await gateways.tell("b", instant_ms - 60_000, SHIPPED)
    found = await look(gateways, postgres)
    assert found.completeness.behind == ("b",)
    assert not found.covers(None)


async def test_a_list_that_just_began_knows_nothing(
    gateways: Gateways, postgres: AsyncEngine, born: Born
) -> None:
    """Redis came back empty: who else was there has not said so yet."""
    instant_ms = await gateways.ask()
    await gateways.tell("a", instant_ms, SHIPPED)
    born.ms = instant_ms
    assert (await look(gateways, postgres)).completeness == NOT_KNOWN


async def test_redis_is_away(postgres: AsyncEngine, free_port: int) -> None:
    """Nobody knows, and nobody waits long for that."""
    client = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    async with asyncio.timeout(5):
        found = await look(Gateways(client, Born()), postgres)
    assert found.completeness == NOT_KNOWN
    assert not found.covers(0)
    await client.aclose()


async def test_postgres_is_away(gateways: Gateways, free_port: int) -> None:
    """The same."""
    away = async_engine(f"postgresql://nobody@127.0.0.1:{free_port}/none", pool_size=1)
    assert (await look(gateways, away)).completeness == NOT_KNOWN
    await away.dispose()


@pytest.mark.parametrize(
    ("seen", "mark", "is_missing"),
    [
        ("1, 9, 0", "1, 9, 5, 4", False),
        ("1, 9, 0", "1, 8, 4, 4", True),
        ("1, 9, 1", "1, 9, 5, 4", True),
        ("1, 9, 1", "1, 10, 5, 5", False),
        ("1, 8, 0", "1, 9, 5, 4", True),
        ("2, 1, 0", "1, 9, 5, 4", True),
    ],
    ids=["sent directly", "unshipped", "open", "ended since", "admitted since", "another boot"],
)
async def test_what_only_postgres_remembers(
    gateways: Gateways, postgres: AsyncEngine, seen: str, mark: str, is_missing: bool
) -> None:
    """A gateway that was seen once, and Redis has forgotten: by its journal's own watermark. The
    newest boot speaks for the others; once nothing more is expected, nothing is missing."""
    await gateways.tell("a", await gateways.ask(), SHIPPED)
    for values in ("0, 99, 5", seen):
        await done(
            postgres,
            "INSERT INTO gateway_seen"
            " (gateway_id, boot, durable_seq, open_count, shipped_seq, seen_at)"
            f" VALUES ('lost', {values}, 0, now())",
        )
    await done(
        postgres,
        "INSERT INTO journal_watermark"
        " (gateway_id, boot, seq, admitted_count, ended_count, missing_count)"
        f" VALUES ('lost', {mark}, 0)",
    )
    found = await look(gateways, postgres)
    assert found.completeness.behind == (("lost",) if is_missing else ())
    assert found.covers(None) is not is_missing
    await done(postgres, "UPDATE gateway_seen SET closed_at = now()")
    assert (await look(gateways, postgres)).covers(None)


async def test_what_was_open_is_ended_by_a_later_boot(
    gateways: Gateways, postgres: AsyncEngine
) -> None:
    """A journal that somebody took over and shipped, and which its gateway's last words call open:
    nothing is missing of it, and nothing is expected once that is told."""
    await gateways.tell("a", await gateways.ask(), SHIPPED)
    await done(
        postgres,
        "INSERT INTO gateway_seen (gateway_id, boot, durable_seq, open_count, shipped_seq, seen_at)"
        " VALUES ('lost', 1, 9, 3, 9, now()), ('worse', 1, 9, 3, 9, now())",
    )
    await done(
        postgres,
        "INSERT INTO journal_watermark"
        " (gateway_id, boot, seq, admitted_count, ended_count, missing_count) VALUES"
        " ('lost', 1, 9, 6, 3, 0), ('lost', 2, 3, 0, 2, 1), ('worse', 1, 9, 6, 3, 0)",
    )
    assert (await look(gateways, postgres)).completeness.behind == ("worse",)
    async with postgres.begin() as db:
        assert await close_if_shipped(db, "lost")
        assert not await close_if_shipped(db, "worse")
        closed = await db.execute(
            text("SELECT gateway_id FROM gateway_seen WHERE closed_at > '-infinity'")
        )
    assert closed.scalars().all() == ["lost"]


async def test_a_dead_letter_is_missing_everywhere(
    gateways: Gateways, postgres: AsyncEngine
) -> None:
    """Until somebody resolves it."""
    await gateways.tell("a", await gateways.ask(), SHIPPED)
    await done(
        postgres,
        "INSERT INTO usage_dead_letter (gateway_id, source, reason, payload)"
        " VALUES ('a', '1/1', 'x', '')",
    )
    found = await look(gateways, postgres)
    assert found.completeness.covers(None)
    assert not found.covers(None)
    assert not found.covers(0)
    await done(postgres, "UPDATE usage_dead_letter SET resolved_at = now()")
    assert (await look(gateways, postgres)).covers(None)


async def test_many_who_ask_at_once_ask_once(gateways: Gateways, postgres: AsyncEngine) -> None:
    """And what was found holds for a second."""
    instant_ms = await gateways.ask()
    await gateways.tell("a", instant_ms, SHIPPED)
    usage = UsageCompleteness(gateways, postgres)
    assert usage.latest == NOT_KNOWN
    answers = await asyncio.gather(*(usage.look() for _ in range(50)))
    assert all(answer is answers[0] for answer in answers)
    assert usage.latest == answers[0].completeness


async def test_late_is_who_stays_behind(
    gateways: Gateways, postgres: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that has just begun has shipped through nothing: that is no word on /readyz yet.
    Once it has, nothing is left of it."""
    monkeypatch.setattr(completeness, "HOLDS_S", 0.0)
    usage = UsageCompleteness(gateways, postgres)
    await gateways.tell("a", 0)
    assert (await usage.look()).completeness.behind == ("a",)
    assert not usage.is_late
    monkeypatch.setattr(completeness, "BEHIND_S", 0.0)
    assert usage.is_late
    await gateways.tell("a", await gateways.ask())
    await usage.look()
    assert not usage.is_late


async def test_who_left_under_load_is_missed_by_nobody(
    gateways: Gateways, postgres: AsyncEngine, tmp_path: Path
) -> None:
    """A gateway was written down with requests that ran, ended them, shipped all and left: complete
    at once, as after a minute; written down again from an older look at the list, still."""
    await gateways.tell("a", await gateways.ask(), SHIPPED)
    journal = await Journal.open(tmp_path)
    admission = an_admission()
    await journal.admitted(admission)
    running = Seen(journal.gateway_id, journal.boot, journal.durable.seq, 0, 1, 1_000)
    async with postgres.begin() as db:
        await note_seen(db, [running])
    assert not (await look(gateways, postgres)).covers(None)
    await journal.ended(a_record(admission))
    shipper = Shipper(postgres, journal)
    shipper.start()
    assert await shipper.drain(10_000)
    await shipper.stop()
    presence = Presence(gateways, journal.gateway_id, shipper, postgres=postgres)
    await presence.publish()
    await presence.leave()
    assert (await look(gateways, postgres)).covers(None)
    async with postgres.begin() as db:
        assert await db.scalar(text("SELECT closed_at <= now() FROM gateway_seen"))
        await note_seen(db, [running._replace(seen_at_ms=2_000)])
        assert not await db.scalar(text("SELECT closed_at <= now() FROM gateway_seen"))
    assert (await look(gateways, postgres)).covers(None)
    await journal.close()


async def test_m23_a_writer_that_fails_is_no_zero(
    gateways: Gateways,
    database_url: str,
    postgres: AsyncEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """M23: nothing of a gateway's reaches Postgres, which can be read all the same: the sums lack
    three requests and say that they may, the lag of all shows it; both heal with it."""
    monkeypatch.setattr(completeness, "HOLDS_S", 0.0)
    monkeypatch.setattr(rules, "LATE_MS", 700)
    usage = UsageCompleteness(gateways, postgres)
    reports = UsageReports(postgres, usage)

    async def told(requests: int, *, complete: bool) -> None:
        """Return once usage says so."""
        async with asyncio.timeout(20):
            while True:
                report = await reports.report(
                    UsageFilter(), group_by=GroupBy.TENANT, time_zone="UTC"
                )
                seen = sum(each.requests for each in report.sums)
                if (seen, report.found.covers(None)) == (requests, complete):
                    return
                await asyncio.sleep(0.05)

    async with postgres_proxy(database_url) as proxy:
        shipping = async_engine(proxy.url)
        journal = await Journal.open(tmp_path)
        shipper = Shipper(shipping, journal)
        shipper.start()
        publishing = asyncio.create_task(Presence(gateways, journal.gateway_id, shipper).run())
        await serve(journal, 2)
        await told(2, complete=True)
        await proxy.refuse()
        await serve(journal, 3)
        await told(2, complete=False)
        assert usage.latest.behind == (journal.gateway_id,)
        assert (usage.latest.lag_ms or 0) > 700
        await proxy.start()
        await told(5, complete=True)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        await shipper.stop()
        await journal.close()
        await shipping.dispose()

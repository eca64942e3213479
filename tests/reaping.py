"""Gateways that are gone, and reapers that look after them, over real stores."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from shipping import query
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record

from billing.domain.usage_record import UsageRecord
from gateway.adapters.copied_journal import CopiedJournal
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways
from gateway.adapters.reaper import Reaper
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import Copies, encode_copy
from gateway.adapters.shipper import Shipper
from gateway.adapters.turns import RedisTurns
from gateway.domain.lease import Admitted
from gateway.domain.presence import Heartbeat

GONE_MS = 60_000
Row = tuple[str, bool, int, int, str, list[str]]
"""Outcome, final, prompt tokens, output tokens, source, flags."""
DAY_MS = 24 * 3_600_000


class Born:
    """A store that never lost anything."""

    async def born_ms(self, tenant_id: str) -> int:
        return 0


class Everyone:
    """Turns that everybody has at once."""

    async def claim(self, tenant_id: str, what: str, holder: str) -> bool:
        return True

    async def release(self, tenant_id: str, what: str, holder: str) -> None:
        return None


@dataclass
class Graves:
    """The stores, and what lies in them of gateways that are gone."""

    engine: AsyncEngine
    redis: RedisClient
    gateways: Gateways
    copies: Copies
    ends: list[UsageRecord] = field(default_factory=list)
    """What reapers told to settle."""

    def reaper(self, own: str = "gw-own", *, final_after_ms: int = DAY_MS) -> Reaper:
        """One that works whenever it is asked to."""
        return Reaper(
            self.gateways,
            self.copies,
            self.engine,
            Everyone(),
            own=own,
            rate=lambda record: record,
            on_ends=self.ends.extend,
            gone_after_ms=GONE_MS,
            final_after_ms=final_after_ms,
            tidy_s=0.0,
        )

    def one_of_many(self, own: str) -> Reaper:
        """One that works when it is its turn."""
        return Reaper(
            self.gateways,
            self.copies,
            self.engine,
            RedisTurns(self.redis),
            own=own,
            rate=lambda record: record,
            on_ends=self.ends.extend,
            tidy_s=0.0,
        )

    async def ask(self, command: str, key: str, *arguments: str | int) -> object:
        """What the store answers."""
        script = self.redis.register_script(
            f"return redis.call('{command}', KEYS[1], unpack(ARGV))"
        )
        return await script([key], arguments)

    async def last_seen(self, gateway_id: str, ago_ms: int, journal: Heartbeat) -> int:
        """The store saw that gateway so long ago, for the last time; returns when."""
        await self.gateways.tell(gateway_id, 0, journal)
        return await self.gone_for(gateway_id, ago_ms)

    async def gone_for(self, gateway_id: str, ago_ms: int) -> int:
        """It was last seen so long ago; returns when."""
        seen_ms = await self.gateways.ask() - ago_ms
        await self.ask("HSET", "weir:{gateways}", gateway_id, f"{seen_ms}|0")
        return seen_ms

    async def copied(
        self,
        gateway_id: str,
        *bodies: Admitted | UsageRecord,
        told: dict[UUID, tuple[int, int]] | None = None,
    ) -> None:
        """It had copied these, and told of those that ran."""
        copies = SecondCopy(self.redis, gateway_id)
        for body in bodies:
            copies.add(body.request_id, encode_copy(body))
        assert await copies.flush()
        await self.copies.tell_progress(gateway_id, told or {})

    async def rows(self) -> dict[UUID, Row]:
        """What the rows say."""
        found = await query(
            self.engine,
            "SELECT request_id, outcome, final, prompt_tokens, output_tokens, usage_source,"
            " usage_flags FROM usage_record",
        )
        assert len({row[0] for row in found}) == len(found)
        return {row[0]: (row[1], row[2], row[3], row[4], row[5], row[6]) for row in found}

    async def keys(self) -> set[str]:
        """What the store has of any gateway."""
        script = self.redis.register_script("return redis.call('KEYS', 'weir:{unshipped*')")
        found = await script(["weir:{gateways}"], [])
        return {name.decode() for name in found}


@asynccontextmanager
async def graves(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores, whose list of gateways has begun."""
    engine, redis = async_engine(database_url), connect_redis(redis_url, timeout_ms=2_000)
    gateways = Gateways(redis, Born())
    await gateways.ask()
    yield Graves(engine, redis, gateways, Copies(redis))
    await redis.aclose()
    await engine.dispose()


async def reaped(*reapers: Reaper) -> None:
    """Each looks for the first time, then for the second, when absence means something."""
    for reaper in reapers:
        await reaper.turn()
    for reaper in reapers:
        await reaper.turn()


@asynccontextmanager
async def journal_of(system: Graves, directory: Path) -> AsyncIterator[tuple[Journal, Shipper]]:
    """A journal and its shipper, which ships when it is drained."""
    journal = await Journal.open(directory)
    shipper = Shipper(system.engine, journal, interval_ms=5)
    shipper.start()
    yield journal, shipper
    await shipper.stop()
    await journal.close()


async def died(
    system: Graves, directory: Path, *requests: Admitted, ended: int = 0, ago_ms: int = GONE_MS
) -> str:
    """A gateway that had admitted these, of which the first `ended` had ended, and shipped none."""
    journal = await Journal.open(directory)
    copies = SecondCopy(system.redis, journal.gateway_id)
    line = CopiedJournal(journal, copies)
    for request in requests:
        await line.admitted(request)
    for request in requests[:ended]:
        await line.ended(a_record(request))
    assert await copies.flush()
    durable = journal.durable
    heartbeat = Heartbeat(journal.boot, durable.seq, len(line.open), 0)
    await journal.close()
    await system.last_seen(journal.gateway_id, ago_ms, heartbeat)
    return journal.gateway_id


def a_gateway() -> str:
    """A name that nobody has."""
    return f"gw-{uuid4().hex[:12]}"


def hours_ago(hours: float) -> int:
    """Unix ms."""
    return time.time_ns() // 1_000_000 - int(hours * 3_600_000)

"""A dead gateway's journal taken over: its rows, its settlements and its place in the list, without
serving anything. To the others it looks as if that gateway had come back for a moment.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from billing.domain.usage_record import UsageRecord
from gateway.adapters.births import Births, history_in
from gateway.adapters.directory import CachedDirectory
from gateway.adapters.journal import Journal
from gateway.adapters.journal.sight import holds_journal
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways, Presence
from gateway.adapters.pulse import Pulse
from gateway.adapters.reaper_restart import CopiedEnds, settle_when_shipped
from gateway.adapters.redis import connect_redis
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.shipper import Shipper
from gateway.adapters.spend import CONNECTIONS, PostgresSpend
from gateway.adapters.turns import RedisTurns
from gateway.clock import SystemClock
from gateway.errors import NotFound
from gateway.serving.earlier_life import lost_lease, rated_if_lost, settle_recorded
from gateway.serving.leases import Leases
from gateway.serving.months import Months
from gateway.serving.ports import LedgerUnavailable
from gateway.settings import Settings

SETTLED_S = 30.0
"""The store of leases is waited for so long once all is shipped."""
RECOUNTED_S = 120.0
FLUSHED_S = 2.0
_POLL_S = 0.05


@dataclass(frozen=True)
class Adopted:
    """What came of it."""

    gateway_id: str
    gateway_lost: int
    """Requests that were running when the gateway died; they are recorded as that."""
    shipped: int
    """Rows brought to Postgres, those of `gateway_lost` among them."""
    dead_letters: int
    missing: int
    """Journal numbers that the disk has lost."""
    unshipped: int
    """Journal records that Postgres did not take in time; they stay in the journal."""
    unsettled: int
    """Settlements that the store of leases did not take; their leases lapse by themselves."""
    copies: int
    """Second copies of requests that this journal does not know; they are left where they are, and
    so is the gateway's place in the list."""
    why: str | None
    """What Postgres or the files last failed with."""

    @property
    def whole(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.unshipped or self.unsettled)


async def adopt(directory: Path, settings: Settings, *, timeout_ms: int) -> Adopted:
    """Ship what the journal of `directory` still owes, settle it late, and take its gateway off the
    list once nobody need wait for it. Repeating it adds nothing.

    `timeout_ms` bounds the shipping; what is not done by then stays for the next one. Raises
    NotFound where no journal lies there, JournalUnusable where a gateway has it or the disk fails,
    StoreUnavailable where Postgres is away at the start.
    """
    if not holds_journal(directory):
        raise NotFound("there is no journal in that directory", code="journal_not_found")
    adoption = _Adoption(settings)
    try:
        return await adoption.run(directory, timeout_ms)
    finally:
        await adoption.close()


class _Adoption:
    """The parts of a gateway that its books need."""

    def __init__(self, settings: Settings) -> None:
        self._clock = SystemClock()
        self._redis = connect_redis(
            settings.redis_url, timeout_ms=settings.redis_timeout_ms, guard=Pulse()
        )
        self._postgres = async_engine(settings.database_url, pool_size=2)
        self._spend_postgres = async_engine(settings.database_url, pool_size=CONNECTIONS)
        self._directory = CachedDirectory(self._postgres, redis=self._redis)
        self._births = Births(self._redis, history_in(self._postgres))
        ledger = RedisLedger(
            self._redis,
            ttl_ms=settings.lease_ttl_ms,
            timeout_ms=settings.redis_timeout_ms,
            births=self._births,
        )
        self._gateways = Gateways(self._redis, self._births)
        self._months = Months(
            self._directory,
            ledger,
            self._births,
            self._gateways,
            spend=PostgresSpend(self._spend_postgres),
            turns=RedisTurns(self._redis),
            lease_ttl_ms=settings.lease_ttl_ms,
        )
        self._leases = Leases(
            ledger,
            self._clock,
            renew_ms=settings.lease_renew_ms,
            ttl_ms=settings.lease_ttl_ms,
            timeout_ms=settings.redis_timeout_ms,
            on_uncounted=self._months.recount,
        )
        self._closing = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, directory: Path, timeout_ms: int) -> Adopted:
        """All of it. Raises JournalUnusable, StoreUnavailable."""
        await self._directory.start()
        self._closing.push_async_callback(self._directory.stop)
        ends = CopiedEnds(
            Copies(self._redis), lambda record: rated_if_lost(record, self._directory)
        )
        journal = await Journal.open(directory, known=ends.known)
        self._closing.push_async_callback(journal.close)
        with contextlib.suppress(LedgerUnavailable):
            await self._births.open()
        shipper = Shipper(self._postgres, journal)
        shipper.on_late = self._settle_late
        copies = SecondCopy(self._redis, journal.gateway_id)
        shipper.on_shipped = copies.take_out
        settle_when_shipped(shipper, journal.recovered.ended, self._settle_late)
        lost = journal.recovered.lost
        await self._leases.release_lost([lost_lease(entry) for entry in lost])
        presence = Presence(
            self._gateways,
            journal.gateway_id,
            shipper,
            owed=lambda: self._leases.owed,
            postgres=self._postgres,
        )
        shipper.start()
        self._closing.push_async_callback(shipper.stop)
        with contextlib.suppress(LedgerUnavailable):
            await presence.publish()  # whoever sums a month waits for what comes now
        for loop in (presence.run(), self._leases.run()):
            self._start(loop)
        shipped = await shipper.drain(timeout_ms)
        await _until(lambda: not self._leases.owed, SETTLED_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSHED_S):
                await copies.flush()
        # A disk that was restored may know less than the copies: leaving would take these along.
        if shipped and not (self._leases.owed or copies.entries):
            await self._leave(presence)
        return Adopted(
            gateway_id=journal.gateway_id,
            gateway_lost=len(lost),
            shipped=shipper.shipped_records,
            dead_letters=shipper.dead_letters,
            missing=shipper.missing_records,
            unshipped=0 if shipped else shipper.unshipped_records,
            unsettled=len(self._leases.owed),
            copies=copies.entries,
            why=None if shipped else shipper.last_error,
        )

    async def close(self) -> None:
        """End what was begun, in order."""
        await self._stop_loops()
        await self._months.stop()
        await self._closing.aclose()
        await self._redis.aclose()
        await self._postgres.dispose()
        await self._spend_postgres.dispose()

    async def _leave(self, presence: Presence) -> None:
        await self._stop_loops()
        with contextlib.suppress(LedgerUnavailable):
            await presence.leave()
        # Not while it is on the list: whoever sums a month would wait for this gateway.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RECOUNTED_S):
                await self._months.until_recounted()

    def _settle_late(self, records: list[UsageRecord]) -> None:
        settle_recorded(records, self._directory, self._leases)

    def _start(self, loop: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(loop))

    async def _stop_loops(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until(holds: Callable[[], bool], timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while not holds():  # noqa: ASYNC110 - settled in a loop of its own
                await asyncio.sleep(_POLL_S)

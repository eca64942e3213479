"""Carries a gateway's journal into Postgres, behind the requests and never in their way."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.partitions import ensure_partitions
from billing.postgres.shipments import SchemaBehind, WatermarkMoved, store, store_spare
from billing.postgres.usage_late import sent_directly
from gateway.adapters.held_watermarks import LOOK_INTERVAL_S, HeldWatermarks
from gateway.adapters.journal import Journal
from gateway.adapters.journal.backlog import Backlog, JournalIncomplete
from gateway.adapters.journal.retention import delete_expired
from gateway.adapters.outstanding import Outstanding
from gateway.adapters.pause import Pause
from gateway.adapters.postgres import failure_name
from gateway.adapters.repeating import AWAY
from gateway.adapters.shipment import Load, Loads, shipment_of
from gateway.telemetry.process import SHIPPED, SHIPPER_BATCH

BACKOFF_MS_FIRST = 100
BACKOFF_MS_MAX = 5_000
INCOMPLETE_BACKOFF_MS_MAX = 500
"""Ends that only memory holds wait so long while the journal's files are away."""
STORE_TIMEOUT_MS = 15_000
HOUSEKEEPING_INTERVAL_S = 3_600.0
HOUSEKEEPING_RETRY_S = 60.0
PARTITIONS_LATE_S = 86_400.0
logger = logging.getLogger(__name__)


class Mark(NamedTuple):
    """How far a journal was written at some moment."""

    place: tuple[int, int]
    """Boot and sequence number."""
    spare: bool
    """Whether there were ends that only memory held."""


class Shipper:
    """One task that follows the journal's files from the watermark in Postgres on.

    Nothing is queued in memory: where Postgres is away, the files wait. Where it comes back, even
    restored to an older state, shipping goes on from the watermark that it then holds.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        journal: Journal,
        *,
        interval_ms: int = 100,
        batch_rows: int = 1000,
        retention_hours: int = 168,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._interval_s = interval_ms / 1000
        self._retention_s = retention_hours * 3600
        self._backlog = Backlog(journal)
        self._loads = Loads(self._backlog, batch_rows, gateway_id=journal.gateway_id)
        self._held = HeldWatermarks(engine, journal.gateway_id)
        self._watermarks: dict[int, Watermark] | None = None
        self._place_known = False
        self._wake = asyncio.Event()
        self._pause = Pause()
        self._passed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._first_boot = journal.boot
        self.on_late: Callable[[list[UsageRecord]], None] = lambda _: None
        """Told of records of an earlier life of this gateway, once they are in Postgres: their
        settlements may have been lost with it."""
        self.on_shipped: Callable[[Sequence[UUID]], None] = lambda _: None
        """Told of requests whose ends Postgres holds now, as rows or as dead letters. Called on the
        loop after each commit: it must not block, and what it raises is only logged. A request may
        be told twice, and after an unknown commit perhaps not at all."""
        self._behind_since_s: float | None = time.time()
        self._housekeeping_at = 0.0
        self._partitions_made_at = time.monotonic()
        self.outstanding = Outstanding(engine)
        self.last_error: str | None = None
        """What Postgres or the journal's files last failed with, None once all works again; never
        content."""
        self.shipped_records = 0
        self.dead_letters = 0
        """Records that Postgres refused of this gateway since it began; each is a bill that waits
        for a person. `outstanding` knows those of all."""
        self.missing_records = 0
        """Journal numbers that the disk has lost."""
        journal.on_durable(self._on_durable)

    def start(self) -> None:
        """Begin to ship. Stop it with `stop`."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="journal-shipper")

    async def stop(self) -> None:
        """End the task; what is not shipped stays in the journal."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def drain(self, timeout_ms: int) -> bool:
        """Wait until all that is durable is in Postgres; False where that took too long."""
        self._wake.set()
        with contextlib.suppress(TimeoutError), self._pause.hurried():
            async with asyncio.timeout(timeout_ms / 1000), self._passed:
                return await self._passed.wait_for(lambda: self.caught_up)
        return False

    def mark(self) -> Mark:
        """How far the journal is written now: all that was recorded before this call."""
        durable = self._journal.durable
        return Mark((durable.key.boot, durable.seq), bool(self._journal.spare()))

    async def wait_shipped(self, mark: Mark, *, timeout_ms: int) -> bool:
        """Whether all up to `mark` is in Postgres, waiting so long for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000), self._passed:
                return await self._passed.wait_for(lambda: self._has_shipped(mark))
        return False

    def _has_shipped(self, mark: Mark) -> bool:
        if mark.spare:  # they may be in a file meanwhile, anywhere up to its end
            return self.caught_up
        return self._place_known and self._backlog.place >= mark.place

    @property
    def place(self) -> tuple[int, int] | None:
        """Boot and sequence number up to which all is in Postgres; None where that is not known."""
        return self._backlog.place if self._place_known else None

    @property
    def caught_up(self) -> bool:
        """Whether all that is durable, or held in memory after a failed write, is in Postgres."""
        durable = self._journal.durable
        return (
            self._place_known
            and self._backlog.place == (durable.key.boot, durable.seq)
            and not self._journal.spare()
        )

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest record that is not in Postgres; 0 where there is none."""
        if self._behind_since_s is None or self.caught_up:
            return 0.0
        return max(0.0, time.time() - self._behind_since_s)

    @property
    def unshipped_records(self) -> int:
        """Journal records, admissions among them, that Postgres does not have."""
        return self._backlog.count() + len(self._journal.spare())

    @property
    def partitions_late(self) -> bool:
        """Whether for a day no month could be made ahead: rows may come to lie in the net."""
        return time.monotonic() - self._partitions_made_at > PARTITIONS_LATE_S

    def _on_durable(self) -> None:
        if self._behind_since_s is None:
            self._behind_since_s = time.time()
        self._wake.set()

    async def _run(self) -> None:
        backoff_ms = BACKOFF_MS_FIRST
        while True:
            self._wake.clear()
            try:
                await self._ship_all()
            except WatermarkMoved:
                logger.info("shipper: the watermark moved; it is read again")
                self._place_known = False
            except SchemaBehind as error:
                self._note(f"the database is not migrated ({error})")
            except AWAY as error:
                self._note(failure_name(error))
                if isinstance(error, JournalIncomplete):
                    backoff_ms = min(backoff_ms, INCOMPLETE_BACKOFF_MS_MAX)
            except Exception as error:
                # A bug must not end metering: it is shown, and tried again from the watermark.
                logger.exception("shipper: unexpected failure")
                self._note(type(error).__name__)
            else:
                if self.last_error is not None:
                    logger.warning("shipper: it ships again")
                self.last_error = None
                backoff_ms = BACKOFF_MS_FIRST
                await self._wait_for_more()
                continue
            self._watermarks = None
            await self._pause.sleep(backoff_ms / 1000 * random.uniform(0.5, 1))  # noqa: S311 - jitter
            backoff_ms = min(backoff_ms * 2, BACKOFF_MS_MAX)

    async def _tell_passed(self) -> None:
        async with self._passed:
            self._passed.notify_all()

    async def _wait_for_more(self) -> None:
        await self._tell_passed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_INTERVAL_S):
                await self._wake.wait()
        # Whatever is written within one interval travels together.
        await self._pause.sleep(self._interval_s)

    async def _ship_all(self) -> None:
        await self._ship_spare()
        if self._watermarks is None:
            watermarks = await self._held.load()
            await self._seek(watermarks)
            self._watermarks = watermarks
        await self._look_after(self._watermarks)
        read_at_s = time.time()
        load = await self._loads.read()
        while load is not None:
            following = await self._loads.read_beside(load, self._ship(load, self._watermarks))
            await self._tell_passed()
            if load.batch.complete:
                self._behind_since_s = load.read_at_s
            elif load.batch.last_at_ms is not None:
                self._behind_since_s = load.batch.last_at_ms / 1000
            sought = await self._look_after(self._watermarks)  # also where there is always more
            if following is None or sought:
                read_at_s = time.time()
                following = await self._loads.read()
            load = following
        self._behind_since_s = None if self.caught_up else read_at_s
        await self._make_space(self._watermarks)

    async def _look_after(self, watermarks: dict[int, Watermark]) -> bool:
        """What is due between two batches, while nothing reads; returns whether the place was
        sought anew."""
        await self._held.check(watermarks)
        sought = False
        if time.monotonic() >= self._housekeeping_at and await self._keep_house(watermarks):
            await self._seek(watermarks)  # the place may have been in what is deleted
            sought = True
        sought |= await self._make_space(watermarks)
        async with asyncio.timeout(STORE_TIMEOUT_MS / 1000):
            await self.outstanding.look()
        return sought

    async def _seek(self, watermarks: dict[int, Watermark]) -> None:
        self._place_known = False
        self._count_missing(await asyncio.to_thread(self._backlog.seek, _seqs(watermarks)))
        self._place_known = True

    async def _ship(self, load: Load, watermarks: dict[int, Watermark]) -> None:
        batch = load.batch
        before = watermarks.get(batch.boot, Watermark())
        shipment = shipment_of(load, gateway_id=self._journal.gateway_id, before=before)
        with SHIPPER_BATCH.time():
            async with asyncio.timeout(STORE_TIMEOUT_MS / 1000):
                dead = await store(self._engine, shipment)
        watermarks[batch.boot] = shipment.after
        self._backlog.accept(batch)
        self.shipped_records += len(shipment.rows)
        SHIPPED.inc(len(shipment.rows))
        self._tell_shipped([entry.body.request_id for entry in batch.ended])
        if batch.boot < self._first_boot and batch.ended:
            self.on_late([entry.body for entry in batch.ended])
        self._count_missing(batch.missing_count)
        self._count_dead(dead)

    async def _ship_spare(self) -> None:
        spare = self._journal.spare()
        if not spare:
            return
        rows = [sent_directly(record, self._journal.gateway_id) for record in spare]
        async with asyncio.timeout(STORE_TIMEOUT_MS / 1000):
            dead = await store_spare(self._engine, rows)
        request_ids = [record.request_id for record in spare]
        self._journal.release_spare(request_ids)
        self.shipped_records += len(spare)
        self._tell_shipped(request_ids)
        self._count_dead(dead)

    def _tell_shipped(self, request_ids: Sequence[UUID]) -> None:
        try:
            if request_ids:
                self.on_shipped(request_ids)
        except Exception:
            logger.exception("shipper: what listens to it failed")

    async def _keep_house(self, watermarks: dict[int, Watermark]) -> int:
        """Partitions ahead and segments behind; returns how many segments were deleted. Neither
        stops shipping: the default partition takes all, a file that stays costs only space."""
        await self._held.check(watermarks, at_once=True)
        self._housekeeping_at = time.monotonic() + HOUSEKEEPING_INTERVAL_S
        try:
            async with asyncio.timeout(STORE_TIMEOUT_MS / 1000), self._engine.begin() as db:
                await ensure_partitions(db)
            self._partitions_made_at = time.monotonic()
            return await asyncio.to_thread(
                delete_expired,
                self._journal.directory,
                self._journal.durable,
                _seqs(watermarks),
                written_before_s=time.time() - self._retention_s,
            )
        except AWAY as error:
            self._housekeeping_at = time.monotonic() + HOUSEKEEPING_RETRY_S
            logger.warning("shipper: housekeeping failed (%s)", failure_name(error))
            return 0

    async def _make_space(self, watermarks: dict[int, Watermark]) -> bool:
        if not self._journal.needs_space:
            return False
        await self._held.check(watermarks, at_once=True)
        deleted = await asyncio.to_thread(self._journal.make_space, _seqs(watermarks))
        if deleted:
            await self._seek(watermarks)
        return deleted > 0

    def _count_missing(self, missing: int) -> None:
        if missing:
            self.missing_records += missing
            logger.error("shipper: %d journal records are missing", missing)

    def _count_dead(self, dead: int) -> None:
        if dead:
            self.dead_letters += dead
            self.outstanding.look_soon()
            logger.error("shipper: Postgres refused %d usage records: dead letters", dead)

    def _note(self, error: str) -> None:
        if self.last_error is None:
            logger.warning("shipper: %s; what is not shipped waits", error)
        self.last_error = error


def _seqs(watermarks: dict[int, Watermark]) -> dict[int, int]:
    return {boot: watermark.seq for boot, watermark in watermarks.items()}

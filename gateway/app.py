"""The composition root: builds a gateway of its parts and ends it in the right order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from litestar import Litestar
from litestar.datastructures import State

from gateway.adapters.births import Births, history_in
from gateway.adapters.body_reader import BodyReader
from gateway.adapters.budget_watch import BudgetWatch
from gateway.adapters.completeness import UsageCompleteness
from gateway.adapters.copying import Copying
from gateway.adapters.directory import CachedDirectory
from gateway.adapters.engine_counters import EngineWitness
from gateway.adapters.fleet import ProbedFleet
from gateway.adapters.journal import Journal
from gateway.adapters.journal.storage import Storage
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.pool_ceilings import RedisPoolCeilings
from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.postgres import async_engine
from gateway.adapters.postgres_past import RestoreWatch
from gateway.adapters.presence import Gateways, Presence
from gateway.adapters.pulse import Pulse
from gateway.adapters.reaper import Reaper
from gateway.adapters.reconciling import Reconciling
from gateway.adapters.redis import connect_redis, require_scripts
from gateway.adapters.sglang import HttpEngine
from gateway.adapters.shipper import Shipper
from gateway.adapters.spend import CONNECTIONS, PostgresSpend
from gateway.adapters.turns import RedisTurns
from gateway.adapters.usage_reports import UsageReports
from gateway.administration import Administration
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.browsing import console_of
from gateway.clock import SystemClock
from gateway.domain.body_room import BodyRoom
from gateway.everywhere import everywhere_loops
from gateway.finance import USAGE_POOL_SIZE, finance_parts, finance_router
from gateway.gauges import open_push, show_gauges, telemetry_loops
from gateway.http.admin import admin_router
from gateway.http.failures import answer_exception
from gateway.http.health import health_handlers
from gateway.http.openapi import document_handler
from gateway.http.session_cookie import SECURE_STATE
from gateway.http.v1 import v1_handlers
from gateway.metering import ends_known_of, metering_loops, open_metering
from gateway.serving.clock_watch import watch_clock
from gateway.serving.condition import Watch
from gateway.serving.earlier_life import lost_lease
from gateway.serving.hosted import HostedFallback
from gateway.serving.leases import Leases
from gateway.serving.live import LiveRequests
from gateway.serving.months import Months
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue.asked import QueueSettings
from gateway.serving.queue.ceilings import LearnedCeilings, rule_for
from gateway.serving.queue.places import Places
from gateway.serving.queue.reporting import Reporter
from gateway.serving.queue_looks import PoolLooks
from gateway.serving.tracing import Tracing
from gateway.settings import Settings
from gateway.straight_line import completions_of, open_traces
from gateway.telemetry.logs import log_end_of_loop
from gateway.telemetry.metrics_push import MetricsPush
from gateway.telemetry.trace_export import SpanExport
from gateway.watching import told_to_others, watching_handlers, watching_loops, watching_parts

_END_MS = 3_000


class Gateway:
    """All parts of one gateway. `open` recovers and connects, `close` drains and ends."""

    queue: RedisPoolQueue
    ceilings: LearnedCeilings
    places: Places
    reporter: Reporter
    looks: PoolLooks
    journal: Journal
    copied: Copying
    shipper: Shipper
    presence: Presence
    reaper: Reaper
    restore_watch: RestoreWatch
    witness: EngineWitness
    reconciling: Reconciling
    budget_watch: BudgetWatch
    watch: Watch
    push: MetricsPush | None
    tracing: Tracing
    spans: SpanExport | None

    def __init__(self, settings: Settings, *, storage: Storage | None = None) -> None:
        """`storage` replaces the disk of the journal in tests."""
        self.settings = settings
        self._storage = storage
        self.clock = SystemClock()
        self.redis = connect_redis(
            settings.redis_url, timeout_ms=settings.redis_timeout_ms, guard=Pulse()
        )
        self._open_pools(settings.database_url)
        self.directory = CachedDirectory(
            self.directory_postgres, redis=self.redis, poll_ms=settings.directory_poll_ms
        )
        self.births = Births(self.redis, history_in(self.postgres))
        self.ledger = RedisLedger(
            self.redis,
            ttl_ms=settings.lease_ttl_ms,
            timeout_ms=settings.redis_timeout_ms,
            births=self.births,
        )
        self.gateways = Gateways(self.redis, self.births)
        self.completeness = UsageCompleteness(self.gateways, self.postgres)
        self.months = Months(
            self.directory,
            self.ledger,
            self.births,
            self.gateways,
            spend=PostgresSpend(self.spend_postgres),
            turns=RedisTurns(self.redis),
            lease_ttl_ms=settings.lease_ttl_ms,
        )
        self.leases = Leases(
            self.ledger,
            self.clock,
            renew_ms=settings.lease_renew_ms,
            ttl_ms=settings.lease_ttl_ms,
            timeout_ms=settings.redis_timeout_ms,
            months=self.months,
            on_uncounted=self.months.recount,
        )
        self.body_room = BodyRoom(settings.bodies_bytes_max)
        self.bodies = BodyReader()
        self.engine = HttpEngine(
            connect_timeout_ms=settings.connect_timeout_ms,
            abort_drain_ms=settings.abort_drain_ms,
        )
        self.fleet = ProbedFleet(self.directory, self.engine, self.clock)
        self.live = LiveRequests(
            self.clock,
            first_event_timeout_ms=settings.first_event_timeout_ms,
            stall_timeout_ms=settings.stall_timeout_ms,
            stream_ms_max=settings.stream_ms_max,
            slow_reader_ms_max=settings.slow_reader_ms_max,
        )
        self.latencies, self.hosted_use = told_to_others(self.redis, self.clock)
        self.fallback = HostedFallback(self.directory, self.clock, use=self.hosted_use)
        self._tasks: list[asyncio.Task[None]] = []

    def _open_pools(self, database_url: str) -> None:
        # Each has its own, so that nobody waits for a connection that another holds.
        self.postgres = async_engine(database_url, pool_size=4)
        self.directory_postgres = async_engine(database_url, pool_size=1)
        self.shipping_postgres = async_engine(database_url, pool_size=2)
        self.spend_postgres = async_engine(database_url, pool_size=CONNECTIONS)
        self.usage_postgres = async_engine(database_url, pool_size=USAGE_POOL_SIZE)
        self.reconciling_postgres = async_engine(database_url, pool_size=4)
        self.invoicing_postgres = async_engine(database_url, pool_size=InvoiceDesk.POOL_SIZE)
        self._pools = (
            *(self.postgres, self.directory_postgres, self.shipping_postgres, self.spend_postgres),
            *(self.usage_postgres, self.reconciling_postgres, self.invoicing_postgres),
        )

    async def open(self) -> None:
        """Recover the journal, load the directory, start what runs behind the requests.

        Raises JournalUnusable, StoreUnavailable: a gateway that cannot see Postgres at the start
        does not start, nor one whose Redis runs no scripts.
        """
        settings = self.settings
        await self.directory.start()
        self.journal = await Journal.open(
            settings.journal_dir,
            segment_bytes=settings.journal_segment_bytes,
            bytes_max=settings.journal_bytes_max,
            storage=self._storage,
            known=ends_known_of(self).known,
        )
        open_metering(self)
        self._open_queue()
        self.push = open_push(self)
        self.tracing, self.spans = open_traces(self)
        self.watch = Watch(
            directory=self.directory,
            leases=self.leases,
            journal=self.journal,
            fleet=self.fleet,
            metering_lag_s=lambda: self.shipper.lag_seconds,
            usage_late=lambda: self.completeness.is_late,
            copies_late=self.copied.is_late,
            dead_letters=lambda: self.shipper.outstanding.dead_letters,
            partitions_late=lambda: self.shipper.partitions_late,
            has_findings=lambda: self.reconciling.has_findings,
            is_restored=lambda: self.restore_watch.restored is not None,
            directory_stale_ms_max=settings.directory_stale_ms_max,
            stores_unseen_ms_max=settings.stores_unseen_ms_max,
        )
        await require_scripts(self.redis)
        with contextlib.suppress(LedgerUnavailable):
            await self.births.open()
        await self.leases.release_lost([lost_lease(lost) for lost in self.journal.recovered.lost])
        await self.fleet.probe_all()
        await self.ceilings.turn()
        await self.reporter.report()  # before it serves: else the first to come find no worker
        self.shipper.start()
        with contextlib.suppress(LedgerUnavailable):
            await self.presence.publish()  # before it serves: nobody may take it for absent
        for loop in (
            self.leases.run(),
            *metering_loops(self),
            *everywhere_loops(self),
            self.places.run(),
            self.reporter.run(),
            self.ceilings.run(),
            self.fleet.run(),
            self.live.run(),
            self.births.run(),
            *watching_loops(self),
            *telemetry_loops(self),
            watch_clock(self.watch, self.ledger, self.clock),
        ):
            self._start(loop)

    def _open_queue(self) -> None:
        settings = self.settings
        self.queue = RedisPoolQueue(
            self.redis,
            url=settings.redis_url,
            gateway=self.journal.gateway_id,
            ttl_ms=settings.lease_ttl_ms,
            timeout_ms=settings.redis_timeout_ms,
            floor_permille=settings.queue_batch_floor_permille,
        )
        store = RedisPoolCeilings(self.redis, timeout_ms=settings.redis_timeout_ms)
        rule = rule_for(settings.queue_tpot_ms)
        self.ceilings = LearnedCeilings(
            self.queue, store, self.leases.watch, self.fleet, self.clock, rule=rule
        )
        self.reporter = Reporter(
            self.queue, self.leases.watch, self.fleet, self.ceilings, self.clock
        )
        self.places = Places(
            self.queue,
            self.leases.watch,
            self.clock,
            self.reporter,
            QueueSettings(
                batch_wait_ms=settings.queue_batch_wait_ms,
                hosted_after_ms=settings.queue_hosted_after_ms,
            ),
        )
        self.looks = PoolLooks(self.queue, self.clock, is_open=lambda: self.leases.watch.is_open)

    def _start(self, loop: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(loop)
        task.add_done_callback(log_end_of_loop)
        self._tasks.append(task)

    async def close(self) -> None:
        """What still runs ends with an explicit error and is recorded; then all is shipped."""
        self.watch.draining = True
        self.places.stop_all()
        self.live.stop_all()
        await self.live.wait_empty(_END_MS)
        await self.places.until_told()
        shipped = await self.shipper.drain(_END_MS)
        await self.shipper.stop()
        await self.months.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.reaper.stop()
        telling = [each.close() for each in (self.push, self.spans) if each is not None]
        await asyncio.gather(*telling)
        await self.copied.copies.flush()
        if shipped and not (self.leases.owed or self.copied.journal.open):
            with contextlib.suppress(LedgerUnavailable):
                await self.presence.leave()
        await self.fleet.aclose()
        await self.directory.stop()
        await self.engine.aclose()
        await self.bodies.stop()
        await self.journal.close()
        await self.redis.aclose()
        for pool in self._pools:
            await pool.dispose()


def create_app(gateway: Gateway) -> Litestar:
    """The HTTP application of a gateway that is opened and closed with it."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        yield
        await gateway.close()

    fallback = gateway.fallback
    administration = Administration(gateway.postgres, redis=gateway.redis)
    usage = UsageReports(gateway.usage_postgres, gateway.completeness)
    finance = finance_parts(gateway, usage)
    live, stories = watching_parts(gateway, fallback)
    console = console_of(gateway, administration, finance, live=live, stories=stories)
    return Litestar(
        route_handlers=[
            *v1_handlers(
                completions=completions_of(gateway, fallback),
                directory=gateway.directory,
                fleet=gateway.fleet,
                ledger=gateway.ledger,
                clock=gateway.clock,
                settings=gateway.settings,
                months=gateway.months,
                looks=gateway.looks,
                usage=usage,
                users=administration,
            ),
            *health_handlers(gateway.watch.condition, lambda: show_gauges(gateway)),
            admin_router(administration, more=watching_handlers(live, stories)),
            finance_router(gateway, administration, finance),
            console.router(),
            document_handler(),
        ],
        exception_handlers={Exception: console.error_handler(answer_exception)},
        lifespan=[lifespan],
        openapi_config=None,
        logging_config=None,
        state=State({SECURE_STATE: gateway.settings.console_secure_cookie}),
    )

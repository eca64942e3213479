"""`weir serve`: one production gateway."""

import asyncio
import gc
import logging
import signal

import click
import uvicorn
import uvloop
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.schema import current_revision, newest_revision
from gateway.adapters.journal import JournalUnusable
from gateway.adapters.journal.storage import Storage
from gateway.adapters.postgres import failure_name
from gateway.app import Gateway, create_app
from gateway.errors import StoreUnavailable, WeirError
from gateway.http.protocol import bounded_protocol
from gateway.settings import Settings, listen_address, load_settings
from gateway.telemetry.logs import (
    configure_logging,
    log_loop_failure,
    log_uncaught,
    name_gateway,
)
from gateway.telemetry.process import VERSION

_AFTER_GRACE_S = 5
logger = logging.getLogger(__name__)


class SchemaTooOld(WeirError):
    """The database was not migrated to this release."""

    code = "schema_too_old"


class _Server(uvicorn.Server):
    """Tells the gateway as soon as a stop is asked for, so that `/readyz` turns at once, who waits
    is sent to another gateway, and what still streams at the end of the grace time ends with an
    explicit error."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    def handle_exit(self, sig: int, frame: object) -> None:
        if not self._gateway.watch.draining:
            self._gateway.watch.draining = True
            grace_s = self._gateway.settings.shutdown_grace_ms / 1000
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(self._gateway.places.stop_all)
            loop.call_soon_threadsafe(loop.call_later, grace_s, self._gateway.live.stop_all)
        # As uvicorn's own, but a stop that was asked for is no death by signal: it ends with 0.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


async def serve_until_stopped(settings: Settings, *, storage: Storage | None = None) -> int:
    """One gateway until it is told to stop; the process's exit status. `storage` replaces the disk
    of its journal in tests."""
    host, port = listen_address(settings)
    asyncio.get_running_loop().set_exception_handler(log_loop_failure)
    gateway = Gateway(settings, storage=storage)
    try:
        await require_schema(gateway.postgres)
        await gateway.open()
        name_gateway(gateway.journal.gateway_id)
    except (JournalUnusable, WeirError) as error:
        click.echo(f"weir: {error}", err=True)
        return 1
    logger.info(
        "gateway %s, release %s, listens on %s",
        gateway.journal.gateway_id,
        VERSION,
        settings.listen,
    )
    config = uvicorn.Config(
        create_app(gateway),
        host=host,
        port=port,
        http=bounded_protocol(
            header_bytes_max=settings.header_bytes_max, head_ms_max=settings.body_read_ms_max
        ),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.shutdown_grace_ms // 1000 + _AFTER_GRACE_S,
    )
    server = _Server(config, gateway)
    keep_for_good()
    await server.serve()
    return 0 if server.started else 1


async def require_schema(engine: AsyncEngine) -> None:
    """Raise SchemaTooOld where the database lacks migrations of this release. One of a later
    release is served: a migration leaves what the release before it uses. Raises StoreUnavailable
    where Postgres is away."""
    try:
        async with engine.connect() as db:
            current = await current_revision(db)
    except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable(f"Postgres cannot be reached: {failure_name(error)}") from error
    newest = newest_revision()
    if current is None or current < newest:
        raise SchemaTooOld(
            f"the database is at {current or 'nothing'}, {newest} is needed: run weir migrate"
        )
    if current > newest:
        logger.warning("the database is at %s, of a later release than %s", current, newest)


def keep_for_good() -> None:
    """Leave what exists now (modules, the directory) out of garbage collections: a full one over
    all of it holds every request up for some 30 ms."""
    gc.collect()
    gc.freeze()


@click.command()
def serve() -> int:
    """One production gateway, configured by environment (WEIR_DATABASE_URL, WEIR_REDIS_URL,
    WEIR_JOURNAL_DIR, WEIR_LISTEN, ...)."""
    settings = load_settings()
    configure_logging(settings.log_level, settings.log_format, settings.log_requests)
    log_uncaught()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return uvloop.run(serve_until_stopped(settings))

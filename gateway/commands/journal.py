"""`weir journal`: what gateways left on a disk, and the journal of a dead one brought home."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.postgres.journal_watermarks import Watermark, load_watermarks
from gateway.adapters.journal import JournalUnusable
from gateway.adapters.journal.sight import Sight, journals_below, look_at
from gateway.adapters.postgres import async_engine
from gateway.administration.views import View
from gateway.adoption import Adopted, adopt
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.errors import StoreUnavailable
from gateway.settings import Settings

COLUMNS = ("directory", "gateway_id", "in_use", "segments", "bytes", "unshipped")
_directory = click.argument(
    "directory", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)


@click.group()
def journal() -> None:
    """Journals on this machine's disks."""


@journal.command("list")
@_directory
@connected
def list_journals(connection: Connection, *, directory: Path) -> None:
    """The journal in DIR, or those in the folders of DIR, with what Postgres does not have."""
    try:
        seen = [look_at(path) for path in journals_below(directory)]
    except OSError as error:
        raise JournalUnusable(f"journal directory: {error.strerror}") from error
    items = asyncio.run(_views(connection, seen))
    show_page({"items": items, "next_cursor": None}, COLUMNS, as_json=connection.as_json)


@journal.command()
@_directory
@click.option(
    "--timeout-s",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    help="Give up shipping after so long; what is left stays in the journal.",
)
@connected
def ship(connection: Connection, *, directory: Path, timeout_s: int) -> None:
    """Bring a dead gateway's journal home, on the machine that has its disk.

    Requests that ran when it died become gateway_lost, all rows go to Postgres, settlements that
    were lost are made good, and the gateway leaves the list of those that are waited for. Exit
    status 1 where something is left to do, or while a gateway has the journal. Repeating it adds
    nothing.
    """
    if connection.redis_url is None:
        raise click.UsageError("set WEIR_REDIS_URL: settlements that were lost are made good there")
    settings = Settings(
        database_url=connection.database_url,
        redis_url=connection.redis_url,
        journal_dir=directory,
    )
    adopted = asyncio.run(adopt(directory, settings, timeout_ms=timeout_s * 1000))
    show_one(_adopted_view(adopted), as_json=connection.as_json)
    if not adopted.whole:
        click.get_current_context().exit(1)


def _adopted_view(adopted: Adopted) -> View:
    return {**asdict(adopted), "whole": adopted.whole}


async def _views(connection: Connection, seen: Sequence[Sight]) -> list[View]:
    engine = async_engine(connection.database_url, pooled=False)
    try:
        async with engine.connect() as db:
            return [
                _view(sight, await load_watermarks(db, sight.gateway_id or "")) for sight in seen
            ]
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await engine.dispose()


def _view(sight: Sight, watermarks: dict[int, Watermark]) -> View:
    shipped = {boot: watermark.seq for boot, watermark in watermarks.items()}
    return {
        "directory": str(sight.directory),
        "gateway_id": sight.gateway_id,
        "in_use": sight.in_use,
        "segments": sight.segments,
        "bytes": sight.bytes,
        "boots": len(sight.last_seqs),
        "unshipped": sight.unshipped(shipped),
    }

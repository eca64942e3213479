"""Bring the database schema up or down. Any number may try at once: one at a time does the work.

Alembic is configured here, not by a file, so that an installed wheel migrates as a checkout does.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from asyncpg import PostgresError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

import migrations
from gateway.adapters.postgres import async_engine
from gateway.errors import StoreUnavailable

MIGRATION_LOCK = 0x57454952_0000
"""pg_advisory_lock key held while a schema changes; the directory's own lock is another."""


class MigrationFailed(click.ClickException):
    """A revision could not be applied, or the database is at one that this release lacks."""


async def upgrade(database_url: str) -> None:
    """Bring the schema to this release's head; at head already it changes nothing.

    Raises StoreUnavailable where Postgres cannot be reached and MigrationFailed where a revision
    fails; what earlier revisions did stays.
    """
    await _under_lock(database_url, lambda config: command.upgrade(config, "head"))


async def downgrade(database_url: str, revision: str) -> None:
    """Take the schema down to `revision` (`base` is an empty one). Raises as `upgrade` does."""
    await _under_lock(database_url, lambda config: command.downgrade(config, revision))


async def current_and_head(database_url: str) -> tuple[str | None, str]:
    """The database's revision (None where it has no schema yet) and this release's head.

    Raises StoreUnavailable where Postgres cannot be reached.
    """
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.connect() as db:
            current = await db.run_sync(_current_revision)
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable(_unreachable(error)) from error
    finally:
        await engine.dispose()
    return current, head()


def head() -> str:
    """This release's latest revision."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    if revision is None:
        raise MigrationFailed("this installation has no migrations")
    return revision


async def _under_lock(database_url: str, work: Callable[[Config], None]) -> None:
    engine = async_engine(database_url, pooled=False)
    try:
        try:
            db = await engine.connect()
        except (OSError, PostgresError, SQLAlchemyError) as error:
            raise StoreUnavailable(_unreachable(error)) from error
        try:
            await _migrate(db, work)
        finally:
            await db.close()
    finally:
        await engine.dispose()


async def _migrate(db: AsyncConnection, work: Callable[[Config], None]) -> None:
    def run(connection: Connection) -> None:
        config = _config()
        config.attributes["connection"] = connection
        work(config)

    try:
        # The lock belongs to the connection, so it also ends with it if this process dies.
        await db.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        await db.commit()
        await db.run_sync(run)
        await db.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
        await db.commit()
    except (CommandError, SQLAlchemyError, OSError) as error:
        raise MigrationFailed(f"the migration failed: {_first_line(error)}") from error


def _config() -> Config:
    config = Config()
    folder = Path(migrations.__file__).parent
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _unreachable(error: BaseException) -> str:
    return f"Postgres cannot be reached: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


@click.command()
@click.option(
    "--database-url",
    envvar="WEIR_DATABASE_URL",
    required=True,
    help="Any URL that psql takes; default: $WEIR_DATABASE_URL.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def migrate(database_url: str, as_json: bool) -> None:
    """Bring the database schema to head."""
    before, after = asyncio.run(_migrate_and_compare(database_url))
    if as_json:
        report = {"from": before, "to": after, "changed": before != after}
        click.echo(msgspec.json.encode(report).decode())
    elif before == after:
        click.echo(f"schema is at {after} already")
    else:
        click.echo(f"schema migrated from {before or 'nothing'} to {after}")


async def _migrate_and_compare(database_url: str) -> tuple[str | None, str]:
    before, _ = await current_and_head(database_url)
    await upgrade(database_url)
    return before, head()

"""`weir dead-letters`: usage records that Postgres refused; each is a bill that waits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import msgspec
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.dead_letters import DeadLetter, KeptLetter, list_letters
from billing.postgres.retries import Retried, retry
from gateway.adapters.journal.entries import EndedEntry, UndecodableRecord, decode
from gateway.adapters.postgres import async_engine
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_page
from gateway.commands.paging import paged
from gateway.errors import StoreUnavailable

LIST_COLUMNS = ("id", "created_at", "gateway_id", "source", "request_id", "reason", "retries")
ALL = "all"
Result = TypeVar("Result")


@click.group("dead-letters")
def dead_letters() -> None:
    """Usage records that Postgres refused."""


@dead_letters.command("list")
@click.option("--resolved", is_flag=True, help="Show those too that are resolved.")
@paged
@connected
def list_dead_letters(
    connection: Connection, *, resolved: bool, limit: int, cursor: str | None
) -> None:
    """The oldest first, what waits; reasons are codes and names of constraints, never content."""
    after_id = _number(cursor or "0", "--cursor is not one that this list gave")

    async def read(engine: AsyncEngine) -> list[KeptLetter]:
        async with engine.connect() as db:
            return await list_letters(db, resolved=resolved, limit=limit + 1, after_id=after_id)

    found = _run(connection, read)
    page = found[:limit]
    view = {
        "items": [msgspec.to_builtins(letter) for letter in page],
        "next_cursor": str(page[-1].id) if len(found) > limit else None,
    }
    show_page(view, LIST_COLUMNS, as_json=connection.as_json)


@dead_letters.command("retry")
@click.argument("letter", metavar="ID|all")
@connected
def retry_dead_letters(connection: Connection, *, letter: str) -> None:
    """Try one again, or all: what Postgres takes now is a row and resolved. Exit status 1 where one
    is refused again. What is resolved already stays so."""
    letter_id = None if letter == ALL else _number(letter, "give the number of a letter, or all")

    async def try_again(engine: AsyncEngine) -> list[Retried]:
        if letter_id is not None:
            async with engine.connect() as db:
                known = await list_letters(db, resolved=True, limit=1, after_id=letter_id - 1)
            if [each.id for each in known] != [letter_id]:
                raise click.ClickException(f"there is no dead letter {letter_id}")
        return await retry(engine, _read, letter_id)

    done = _run(connection, try_again)
    refused = [each for each in done if each.reason is not None]
    view = {
        "resolved": len(done) - len(refused),
        "refused": [each._asdict() for each in refused],
    }
    if connection.as_json:
        click.echo(msgspec.json.encode(view).decode())
    else:
        click.echo(f"{view['resolved']} resolved, {len(refused)} refused again")
        for each in refused:
            click.echo(f"{each.id}  {each.reason}")
    if refused:
        click.get_current_context().exit(1)


def _read(letter: DeadLetter) -> UsageRecord | None:
    """The record: alone as this release buries it or, where no release could read it, as the
    journal's whole entry. An admission is no record; its end comes by itself."""
    try:
        return msgspec.msgpack.decode(letter.payload, type=UsageRecord)
    except msgspec.DecodeError:
        pass
    try:
        entry = decode(letter.payload)
    except UndecodableRecord as error:
        raise ValueError("it still cannot be read") from error
    return entry.body if isinstance(entry, EndedEntry) else None


def _number(value: str, message: str) -> int:
    if not (value.isascii() and value.isdigit()) or int(value) >= 2**63:
        raise click.UsageError(message)
    return int(value)


def _run(connection: Connection, work: Callable[[AsyncEngine], Awaitable[Result]]) -> Result:
    """Do `work` with an engine. Raises StoreUnavailable."""
    return asyncio.run(_running(connection, work))


async def _running(
    connection: Connection, work: Callable[[AsyncEngine], Awaitable[Result]]
) -> Result:
    engine = async_engine(connection.database_url, pooled=False)
    try:
        return await work(engine)
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await engine.dispose()

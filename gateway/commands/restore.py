"""`weir restore`: what Postgres lacks since it was restored from a backup, by what Redis knows."""

import asyncio
from datetime import UTC, datetime

import click
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.postgres.journal_watermarks import load_newest
from gateway.adapters.postgres import async_engine
from gateway.adapters.postgres_past import Memory, PostgresPast, audit_hash, audit_head
from gateway.adapters.price_past import PricePast, lost_rows
from gateway.adapters.redis import connect_redis
from gateway.administration.views import View
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection, connected
from gateway.commands.output import show_list, show_one
from gateway.domain.postgres_past import AuditHead, Mark, Restored, lacking, restored
from gateway.errors import NotFound, StoreUnavailable
from gateway.serving.ports import LedgerUnavailable

COLUMNS = ("gateway_id", "boot", "had_seq", "has_seq")


@click.group()
def restore() -> None:
    """What Postgres lacks since it was restored from a backup."""


@restore.command("check")
@connected
def check_restore(connection: Connection) -> None:
    """Journals of which Postgres has held more than it does, prices that it has lost, and whether
    changes of administrators are gone. Exit status 1 where there is any. Changes nothing."""
    memory, held, found = asyncio.run(_compared(connection))
    gone = lacking(memory.shipped, held)
    journals = [_journal_view(name, mark, held.get(name)) for name, mark in sorted(gone.items())]
    changes = None if found is None else _changes_view(found)
    _, prices = asyncio.run(_lost_prices(connection))
    if connection.as_json:
        view: View = {"journals": journals, "prices": prices, "changes": changes}
        show_one(view, as_json=True)
    else:
        _show(journals, prices, changes)
    if journals or any(prices.values()) or found is not None:
        click.get_current_context().exit(1)


@restore.command("prices")
@connected
def restore_prices(connection: Connection) -> None:
    """Write prices and plans again that Postgres has lost, with their numbers and times, so that
    what was rated at them can be invoiced. Those that are there stay. Repeating it adds nothing."""
    rows, lost = asyncio.run(_lost_prices(connection))
    wanted = {table: {number: rows[table][number] for number in lost[table]} for table in lost}
    written = connection.run(
        lambda administration: administration.put_prices_back(connection.actor, wanted)
    )
    show_one(dict(written), as_json=connection.as_json)
    if any(len(written.get(table, ())) < len(lost[table]) for table in lost):
        click.get_current_context().exit(1)


@restore.command("confirm")
@connected
def confirm_restore(connection: Connection) -> None:
    """Say that the lost changes of administrators are known and made again: `/readyz` says
    `restored` no longer, and invoices may be issued. The audit log gets an entry."""
    memory, _, found = asyncio.run(_compared(connection))
    if found is None:
        raise NotFound("no changes are known to be lost", code="nothing_lost")
    view = _changes_view(found)
    connection.run(lambda administration: administration.confirm_restore(connection.actor, view))
    asyncio.run(_forget(connection, memory))
    show_one(view, as_json=connection.as_json)


def _show(journals: list[View], prices: dict[str, list[int]], changes: View | None) -> None:
    if journals:
        click.echo("Postgres lacks of these journals what it had: weir journal ship DIR")
        show_list(journals, COLUMNS, as_json=False)
    if changes is not None:
        click.echo(
            f"the audit log had entry {changes['audit_had']}, and ended with"
            f" {changes['audit_has']} at {changes['found_at']}: changes are lost"
        )
    for table, numbers in prices.items():
        if numbers:
            click.echo(f"lost of {table}: {', '.join(map(str, numbers))}: weir restore prices")
    if not journals and not any(prices.values()) and changes is None:
        click.echo("Postgres holds all that is known of it")


async def _compared(connection: Connection) -> tuple[Memory, dict[str, Mark], Restored | None]:
    """Raises StoreUnavailable, UsageError."""
    if connection.redis_url is None:
        raise click.UsageError("set WEIR_REDIS_URL: what Postgres had is remembered there")
    redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
    engine = async_engine(connection.database_url, pooled=False)
    try:
        memory = await PostgresPast(redis).read()
        async with engine.connect() as db:
            held = {name: Mark(*mark) for name, mark in (await load_newest(db)).items()}
            head = await audit_head(db)
            there = await audit_hash(db, (memory.audit or AuditHead(0, "")).id)
    except LedgerUnavailable as error:
        raise StoreUnavailable("Redis cannot be reached") from error
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await redis.aclose()
        await engine.dispose()
    found = restored(
        memory.restored, memory.audit, head=head, hash_there=there, now_ms=memory.now_ms
    )
    return memory, held, found


async def _lost_prices(
    connection: Connection,
) -> tuple[dict[str, dict[int, str]], dict[str, list[int]]]:
    """All that is remembered, and the ids of what is lost. Raises StoreUnavailable."""
    redis = connect_redis(connection.redis_url or "", timeout_ms=REDIS_TIMEOUT_MS)
    engine = async_engine(connection.database_url, pooled=False)
    try:
        remembered = await PricePast(redis).rows()
        async with engine.connect() as db:
            return remembered, await lost_rows(db, remembered)
    except LedgerUnavailable as error:
        raise StoreUnavailable("Redis cannot be reached") from error
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await redis.aclose()
        await engine.dispose()


async def _forget(connection: Connection, memory: Memory) -> None:
    """A gateway that has not looked yet must not find the same again: where none has, the head of
    the log is entered here."""
    redis = connect_redis(connection.redis_url or "", timeout_ms=REDIS_TIMEOUT_MS)
    engine = async_engine(connection.database_url, pooled=False)
    try:
        past = PostgresPast(redis)
        if memory.audit is not None:
            async with engine.connect() as db:
                await past.enter_audit(await audit_head(db))
        await past.confirm()
    except LedgerUnavailable as error:
        raise StoreUnavailable("Redis cannot be reached") from error
    finally:
        await redis.aclose()
        await engine.dispose()


def _journal_view(name: str, had: Mark, has: Mark | None) -> View:
    same_boot = has is not None and has.boot == had.boot
    has_seq = has.seq if has is not None and same_boot else 0
    return {"gateway_id": name, "boot": had.boot, "had_seq": had.seq, "has_seq": has_seq}


def _changes_view(found: Restored) -> View:
    at = datetime.fromtimestamp(found.found_ms / 1000, UTC)
    return {
        "found_at": at.isoformat().replace("+00:00", "Z"),
        "audit_has": found.head_id,
        "audit_had": found.lost_id,
    }

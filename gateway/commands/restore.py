"""`weir restore`: what Postgres lacks since it was restored from a backup, by what Redis knows."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import click
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.journal_watermarks import load_shipped
from gateway.adapters.number_past import LostNumbers, NumberPast, load_numbers, lost_numbers
from gateway.adapters.postgres import async_engine
from gateway.adapters.postgres_past import PostgresPast, audit_head, find_restored
from gateway.adapters.price_past import PricePast, lost_rows
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.withdrawal_past import load_withdrawn, lost_withdrawals
from gateway.administration.views import View
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection, connected
from gateway.commands.output import show_list, show_one
from gateway.domain.postgres_past import Boot, Restored, lacking
from gateway.errors import NotFound, StoreUnavailable
from gateway.serving.ports import LedgerUnavailable

JOURNAL_COLUMNS = ("gateway_id", "boot", "had_seq", "has_seq")
WITHDRAWN_COLUMNS = ("kind", "id")
NUMBER_COLUMNS = ("series", "had", "has")


class Lacks(NamedTuple):
    """What Postgres has held and does not hold."""

    journals: list[View]
    prices: dict[str, list[int]]
    """The ids of each table's rows."""
    numbers: list[LostNumbers]
    restored: Restored | None
    price_rows: dict[str, dict[int, str]]
    """All rows that are remembered."""
    withdrawals: list[View]
    """Keys and tenants that are refused, and good by what Postgres says."""

    @property
    def is_nothing(self) -> bool:
        """Whether it holds all that is known of it."""
        return self.is_whole and not self.has_changes

    @property
    def has_changes(self) -> bool:
        """Whether changes of administrators are lost, prices aside."""
        return self.restored is not None or bool(self.numbers)

    @property
    def is_whole(self) -> bool:
        """Whether it holds what no change of administrators is about."""
        return not self.journals and not any(self.prices.values()) and not self.withdrawals


@click.group()
def restore() -> None:
    """What Postgres lacks since it was restored from a backup."""


@restore.command("check")
@connected
def check_restore(connection: Connection) -> None:
    """Journals of which Postgres has held more than it does, prices and numbers of documents that
    it has lost, and whether changes of administrators are gone. Exit status 1 where there is any.
    Changes nothing."""
    lacks = asyncio.run(_lacks(connection))
    if connection.as_json:
        changes = None if lacks.restored is None else _changes_view(lacks.restored)
        view: View = {
            "journals": lacks.journals,
            "prices": lacks.prices,
            "numbers": [each._asdict() for each in lacks.numbers],
            "withdrawals": lacks.withdrawals,
            "changes": changes,
        }
        show_one(view, as_json=True)
    else:
        _show(lacks)
    if not lacks.is_nothing:
        click.get_current_context().exit(1)


@restore.command("prices")
@connected
def restore_prices(connection: Connection) -> None:
    """Write prices and plans again that Postgres has lost, with their numbers and times, so that
    what was rated at them can be invoiced. Those that are there stay. Exit status 1 where one could
    not be. Repeating it adds nothing."""
    lacks = asyncio.run(_lacks(connection))
    wanted = {
        table: {number: lacks.price_rows[table][number] for number in numbers}
        for table, numbers in lacks.prices.items()
    }
    written = connection.run(
        lambda administration: administration.put_prices_back(connection.actor, wanted)
    )
    show_one(dict(written), as_json=connection.as_json)
    if any(len(written[table]) < len(numbers) for table, numbers in lacks.prices.items()):
        click.get_current_context().exit(1)


@restore.command("confirm")
@click.option(
    "--forget-prices",
    is_flag=True,
    help="Also prices that are lost are not wanted back: what was rated at them has no invoice.",
)
@connected
def confirm_restore(connection: Connection, forget_prices: bool) -> None:
    """Say that the lost changes of administrators are known and made again: `/readyz` says
    `restored` no longer, and invoices may be issued. The audit log gets an entry. Prices that are
    lost are still told, and can be put back, but with `--forget-prices`."""
    lacks = asyncio.run(_lacks(connection))
    forgotten = {table: ids for table, ids in lacks.prices.items() if ids and forget_prices}
    if not lacks.has_changes and not forgotten:
        raise NotFound("no changes are known to be lost", code="nothing_lost")
    view = {} if lacks.restored is None else _changes_view(lacks.restored)
    if lacks.numbers:
        view["numbers"] = [each._asdict() for each in lacks.numbers]
    if forgotten:
        view["forgotten_prices"] = forgotten
    connection.run(lambda administration: administration.confirm_restore(connection.actor, view))
    asyncio.run(_forget(connection, forgotten))
    show_one(view, as_json=connection.as_json)


def _show(lacks: Lacks) -> None:
    if lacks.journals:
        click.echo("Postgres lacks of these journals what it had: weir journal ship DIR")
        show_list(lacks.journals, JOURNAL_COLUMNS, as_json=False)
    for table, ids in lacks.prices.items():
        if ids:
            click.echo(f"lost of {table}: {', '.join(map(str, ids))}: weir restore prices")
    if lacks.withdrawals:
        click.echo("withdrawn, and not in Postgres: gateways refuse them, and write it again")
        show_list(lacks.withdrawals, WITHDRAWN_COLUMNS, as_json=False)
    if lacks.numbers:
        click.echo("documents were issued with numbers that Postgres does not know:")
        numbers: list[View] = [each._asdict() for each in lacks.numbers]
        show_list(numbers, NUMBER_COLUMNS, as_json=False)
    if lacks.restored is not None:
        changes = _changes_view(lacks.restored)
        click.echo(
            f"the audit log had entry {changes['audit_had']}, and ended with"
            f" {changes['audit_has']} at {changes['found_at']}: changes are lost"
        )
    if lacks.is_nothing:
        click.echo("Postgres holds all that is known of it")


@asynccontextmanager
async def _stores(connection: Connection) -> AsyncIterator[tuple[RedisClient, AsyncConnection]]:
    """Both of them. Raises StoreUnavailable, UsageError."""
    if connection.redis_url is None:
        raise click.UsageError("set WEIR_REDIS_URL: what Postgres had is remembered there")
    # What a store's driver logs is said in one line below.
    logging.getLogger("gateway").addHandler(logging.NullHandler())
    redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
    engine = async_engine(connection.database_url, pooled=False)
    try:
        async with engine.connect() as db:
            yield redis, db
    except LedgerUnavailable as error:
        raise StoreUnavailable("Redis cannot be reached") from error
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await redis.aclose()
        await engine.dispose()


async def _lacks(connection: Connection) -> Lacks:
    async with _stores(connection) as (redis, db):
        # The store first: what Postgres is asked after that is at least as far.
        memory = await PostgresPast(redis).read()
        price_rows = await PricePast(redis).rows()
        numbers = await NumberPast(redis).read()
        withdrawn = await load_withdrawn(redis)
        shipped = await load_shipped(db, recent=timedelta(0))
        held = {Boot(each.gateway_id, each.boot): each.seq for each in shipped}
        gone = lacking(memory.shipped, held)
        return Lacks(
            [_journal_view(boot, seq, held.get(boot, 0)) for boot, seq in sorted(gone.items())],
            await lost_rows(db, price_rows),
            lost_numbers(numbers, await load_numbers(db)),
            await find_restored(memory, db),
            price_rows,
            [
                {"kind": each.kind, "id": each.subject_id}
                for each in await lost_withdrawals(db, withdrawn)
            ],
        )


async def _forget(connection: Connection, prices: dict[str, list[int]]) -> None:
    """What is confirmed. A gateway that has not looked yet must not find the same again: the head
    of the log is entered here."""
    async with _stores(connection) as (redis, db):
        past = PostgresPast(redis)
        await past.enter_audit(await audit_head(db))
        await NumberPast(redis).forget()
        await PricePast(redis).forget(prices)
        await past.confirm()


def _journal_view(boot: Boot, had_seq: int, has_seq: int) -> View:
    return {
        "gateway_id": boot.gateway_id,
        "boot": boot.number,
        "had_seq": had_seq,
        "has_seq": has_seq,
    }


def _changes_view(found: Restored) -> View:
    at = datetime.fromtimestamp(found.found_ms / 1000, UTC)
    return {
        "found_at": at.isoformat().replace("+00:00", "Z"),
        "audit_has": found.head_id,
        "audit_had": found.lost_id,
    }

"""`weir reconcile`: usage records proved against journals, engines, roll-ups and themselves."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import msgspec
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.domain.reconciliation.findings import (
    TITLES,
    Finding,
    Verdict,
    count_findings,
    verdict_view,
)
from gateway.adapters.births import Births, history_in
from gateway.adapters.postgres import async_engine
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_journals import JournalFiles, open_journals
from gateway.adapters.reconciler_ledgers import Ledger, LedgerUnreadable, read_ledger
from gateway.adapters.reconciler_live import LiveStores
from gateway.adapters.redis import connect_redis
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option
from gateway.domain.presence import GONE_MS
from gateway.errors import NotFound, StoreUnavailable

REDIS_TIMEOUT_MS = 1_000
QUARTER_MS = 900_000
SHOWN_MAX = 50
"""Findings of one check that are printed; `--json` has all."""


@click.command()
@click.option(
    "--from", "from_ms", callback=instant_option, required=True, help="Admitted at or after this."
)
@click.option("--to", "to_ms", callback=instant_option, help="And before this; default: now.")
@click.option(
    "--journal",
    "directories",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Journals that lie here name what is lost, and are replayed.",
)
@click.option(
    "--ledger",
    "ledgers",
    multiple=True,
    metavar="URL",
    help="A simulated or local worker whose own account of every sequence is compared.",
)
@click.option(
    "--gone-ms",
    envvar="WEIR_GATEWAY_GONE_MS",
    type=click.IntRange(min=1),
    default=GONE_MS,
    show_default=True,
    help="As the gateways have it; default: $WEIR_GATEWAY_GONE_MS.",
)
@connected
def reconcile(
    connection: Connection,
    *,
    from_ms: int,
    to_ms: int | None,
    directories: Sequence[Path],
    ledgers: Sequence[str],
    gone_ms: int,
) -> None:
    """Prove the usage records of a period, in whole quarters of an hour; exit status 1 where
    anything is found. Changes nothing. Several --journal and --ledger may be given."""
    period = _period(from_ms, to_ms)
    try:
        journals = [journal for path in directories for journal in open_journals(path)]
    except (NotFound, OSError) as error:
        raise click.UsageError(f"--journal: {error}") from error
    verdicts = asyncio.run(_run(connection, period, journals, ledgers, gone_ms))
    found = count_findings(verdicts)
    if connection.as_json:
        click.echo(msgspec.json.encode(view(period, verdicts)).decode())
    else:
        _show(period, verdicts)
    if found:
        click.get_current_context().exit(1)


def view(period: Period, verdicts: Sequence[Verdict]) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "from": period.since,
        "to": period.until,
        "ok": not count_findings(verdicts),
        "findings": count_findings(verdicts),
        "checks": [verdict_view(verdict) for verdict in verdicts],
    }


def _period(from_ms: int, to_ms: int | None) -> Period:
    """Widened to whole quarters."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    until_ms = now_ms if to_ms is None else to_ms
    if from_ms >= until_ms:
        raise click.UsageError("--from must be before --to, and in the past")
    first = from_ms // QUARTER_MS * QUARTER_MS
    last = -(-until_ms // QUARTER_MS) * QUARTER_MS
    epoch = datetime.fromtimestamp(0, UTC)
    try:
        return Period(epoch + timedelta(milliseconds=first), epoch + timedelta(milliseconds=last))
    except OverflowError as error:
        raise click.UsageError("--from and --to must be times that a calendar has") from error


async def _run(
    connection: Connection,
    period: Period,
    journals: list[JournalFiles],
    urls: Sequence[str],
    gone_ms: int,
) -> list[Verdict]:
    """Raises StoreUnavailable."""
    ledgers = await _ledgers(urls)
    engine = async_engine(connection.database_url, pooled=False)
    redis = None
    try:
        live = None
        if connection.redis_url is not None:
            redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
            live = LiveStores(redis, Births(redis, history_in(engine)))
        scope = Scope(period, journals, ledgers)
        return await Reconciler(engine, live, gone_after_ms=gone_ms).run(scope)
    except (PostgresError, SQLAlchemyError, OSError) as error:
        raise StoreUnavailable(
            "Postgres or a journal cannot be read, or is not migrated"
        ) from error
    finally:
        await engine.dispose()
        if redis is not None:
            await redis.aclose()


async def _ledgers(urls: Sequence[str]) -> list[Ledger]:
    try:
        return [await read_ledger(url) for url in urls]
    except LedgerUnreadable as error:
        raise click.UsageError(f"--ledger: {error}") from error


def _show(period: Period, verdicts: Sequence[Verdict]) -> None:
    click.echo(f"{period.since:%Y-%m-%dT%H:%M}Z to {period.until:%Y-%m-%dT%H:%M}Z")
    for verdict in verdicts:
        click.echo(_line(verdict))
        for finding in verdict.findings[:SHOWN_MAX]:
            click.echo(f"  {_told(finding)}")
        if len(verdict.findings) > SHOWN_MAX:
            click.echo(f"  and {len(verdict.findings) - SHOWN_MAX} more: --json has all")


def _line(verdict: Verdict) -> str:
    title = TITLES[verdict.check]
    if verdict.not_applicable is not None and verdict.ok:
        return f"{verdict.check}  --  {title}; not applicable: {verdict.not_applicable}"
    state = "ok" if verdict.ok else f"{len(verdict.findings)} found"
    told = ", ".join(f"{term.name} {term.size}" for term in verdict.terms)
    return f"{verdict.check}  {state}  {title}: {told}"


def _told(finding: Finding) -> str:
    named = "" if finding.request_id is None else f" request {finding.request_id}"
    return f"{finding.subject}{named}: {finding.size} {finding.unit}: {finding.what}"

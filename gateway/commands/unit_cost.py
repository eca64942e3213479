"""`weir unit-cost`: the pool's bill, and whom it is for."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.domain.unit_cost.question import (
    Asked,
    CostBy,
    InvalidQuestion,
    Question,
    question_of,
)
from billing.domain.unit_cost.step_model import COEFFICIENTS, DEFAULT_PROFILE, PROFILES
from gateway.adapters.completeness import Found
from gateway.adapters.postgres import async_engine
from gateway.adapters.unit_costs import UnitCostFound, work_out
from gateway.adapters.usage_reports import standing_view
from gateway.administration.unit_cost_view import unit_cost_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option
from gateway.commands.unit_cost_table import lines_of
from gateway.commands.usage import look_at_usage
from gateway.errors import StoreUnavailable

FILE_BYTES_MAX = 1024 * 1024
_OPTIONS = {"since": "--from", "until": "--to", "coefficient": "--coefficient"}


def _pool_options(command: Callable[..., None]) -> Callable[..., None]:
    """What was paid, in which way it is said."""
    options = (
        click.option("--pool-hours", metavar="H", help="GPU-hours that were paid for."),
        click.option("--gpus", metavar="N", help="Or so many GPUs all the time."),
        click.option(
            "--hours-file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Or the GPU-hours of each day: a CSV with date,gpu_hours.",
        ),
        click.option(
            "--from-samples",
            is_flag=True,
            help="Or as long as each worker was seen, times the GPUs of a replica.",
        ),
        click.option("--price-per-gpu-hour", required=True, metavar="2.35"),
        click.option("--currency", default="USD", show_default=True),
        click.option(
            "--operations-cost", default="0", metavar="X", help="Of the whole time, beside GPUs."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _model_options(command: Callable[..., None]) -> Callable[..., None]:
    """What work is and what it is compared with."""
    options = (
        click.option(
            "--hosted",
            multiple=True,
            metavar="NAME",
            help="Compare with a hosted provider's price of ours, with list:NAME of a public list,"
            " or with all of that: list.",
        ),
        click.option("--hosted-input", metavar="0.59", help="Or with this price of a million in"),
        click.option("--hosted-output", metavar="0.79", help="and out, in the bill's currency."),
        click.option(
            "--profile",
            type=click.Choice(list(PROFILES)),
            default=DEFAULT_PROFILE.name,
            show_default=True,
            help="The step model.",
        ),
        click.option(
            "--coefficient",
            "coefficients",
            multiple=True,
            metavar="NAME=VALUE",
            help=f"Another constant for it: {', '.join(COEFFICIENTS)}. May be given often.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("unit-cost")
@click.option(
    "--from", "since_ms", callback=instant_option, required=True, help="Admitted at or after this."
)
@click.option("--to", "until_ms", callback=instant_option, required=True, help="And before this.")
@click.option("--model", help="The pool of this model only.")
@click.option(
    "--by",
    type=click.Choice([each.value for each in CostBy]),
    default=CostBy.TENANT.value,
    show_default=True,
    help="Whom the bill is shown for; a day and an hour of the day are of UTC.",
)
@_pool_options
@_model_options
@connected
def unit_cost(
    connection: Connection,
    *,
    hours_file: Path | None,
    coefficients: tuple[str, ...],
    **options: Any,
) -> None:
    """Share the pool's bill out over tenants by the work of their requests, idle time apart; what
    tokens cost; at which utilisation a hosted provider is dearer. Work is computed by a step model
    and not measured."""
    asked = Asked(
        hours_file=None if hours_file is None else _read(hours_file),
        coefficients=_named(coefficients),
        **options,
    )
    try:
        question = question_of(asked, now_ms=time.time_ns() // 1_000_000)
    except InvalidQuestion as error:
        option = _OPTIONS.get(error.name, "--" + error.name.replace("_", "-"))
        raise click.UsageError(f"{option} {error}") from error
    found, complete = asyncio.run(_answer(connection, question))
    standing = standing_view(
        complete, until_ms=question.until_ms, provisional_requests=found.provisional_requests
    )
    if connection.as_json:
        click.echo(msgspec.json.encode({**unit_cost_view(found), **standing}).decode())
        return
    for line in lines_of(found):
        click.echo(line)
    if not standing["complete"]:
        through = standing["complete_through"] or "nothing that is known"
        click.echo(f"Records may be missing: complete through {through}.", err=True)


async def _answer(connection: Connection, question: Question) -> tuple[UnitCostFound, Found]:
    """Raises StoreUnavailable, Unprocessable."""
    engine = async_engine(connection.database_url, pooled=False)
    try:
        complete = await look_at_usage(connection.redis_url, engine)
        async with engine.connect() as db:
            return await work_out(db, question), complete
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await engine.dispose()


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise click.UsageError(f"--hours-file has more than {FILE_BYTES_MAX} bytes")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError("--hours-file cannot be read as UTF-8 text") from error


def _named(pairs: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in pairs:
        name, is_one, value = pair.partition("=")
        if not is_one:
            raise click.UsageError("--coefficient must be NAME=VALUE, such as batch=65")
        if name in values:
            raise click.UsageError(f"--coefficient {name} is given twice")
        values[name] = value
    return values

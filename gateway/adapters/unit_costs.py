"""The unit cost of a question, read from Postgres and worked out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.unit_cost.allocation import NothingPaid
from billing.domain.unit_cost.hosted import HostedRate, NoHostedPrice
from billing.domain.unit_cost.paid_time import paid_while_seen
from billing.domain.unit_cost.question import Question
from billing.domain.unit_cost.report import UnitCost, unit_cost
from billing.postgres.unit_cost import read_hosted_rates, read_seen, read_sold, read_work
from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.usage_turns import FairTurns, LineFull, NoTurn
from gateway.domain.instants import instant_of
from gateway.errors import StoreUnavailable, Unprocessable

STATEMENT_TIMEOUT_MS = 60_000
WAIT_S = 65.0
"""Longer than a statement takes."""
WAITING_MAX = 4
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@dataclass(frozen=True)
class UnitCostFound:
    """The answer, and what of it may be missing."""

    question: Question
    cost: UnitCost
    models: int
    """How many the pool served."""
    hosted_requests: int
    provisional_requests: int


class UnitCosts:
    """One question at a time; a few wait. `postgres` has a connection for it that serves no
    request."""

    POOL_SIZE = 1

    def __init__(self, postgres: AsyncEngine, completeness: UsageCompleteness) -> None:
        self._postgres = postgres
        self._completeness = completeness
        self._turns = FairTurns(at_once=1, waiting_max=WAITING_MAX)

    async def answer(self, question: Question) -> tuple[UnitCostFound, Found]:
        """With how complete usage was before it was read. Raises Unprocessable, and
        StoreUnavailable also where it would take too long."""
        async with self._turn():
            try:
                found = await self._completeness.look()
                async with self._postgres.connect() as db:
                    await db.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"))
                    return await work_out(db, question), found
            except _AWAY as error:
                raise StoreUnavailable(
                    "the unit cost cannot be read at the moment; of a long time weir unit-cost may"
                    " take longer than a minute, an answer here may not"
                ) from error

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with self._turns.turn("finance", wait_s=WAIT_S):
                yield
        except (LineFull, NoTurn) as error:
            raise StoreUnavailable("others are asking for the unit cost: try again") from error


async def work_out(db: AsyncConnection, question: Question) -> UnitCostFound:
    """From what one snapshot shows. Raises Unprocessable, naming the field, where the question
    cannot be answered with what is there."""
    await db.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
    since, until = instant_of(question.since_ms), instant_of(question.until_ms)
    assert since is not None  # noqa: S101 - they are whole numbers
    assert until is not None  # noqa: S101
    hosted = await _hosted_rates(db, question)
    paid = question.paid
    if paid is None:
        seen = await read_seen(db, since, until, model=question.model)
        paid = paid_while_seen(
            question.since_ms, question.until_ms, seen, gpus=question.step_model.gpus
        )
    by, model = question.by, question.model
    sold = await read_sold(db, since, until, by=by, model=model)
    work = await read_work(db, since, until, by=by, model=model, by_day=paid.by_day)
    models = sorted({each.model for each in sold.sold})
    rates = {
        name: dict.fromkeys(models, each) if isinstance(each, HostedRate) else each
        for name, each in hosted.items()
    }
    try:
        cost = unit_cost(
            costs=question.costs,
            model=question.step_model,
            paid=paid,
            cells=work.cells,
            hours=work.hours,
            sold=sold.sold,
            hosted=rates,
        )
    except NoHostedPrice as error:
        raise Unprocessable(f"hosted: {error}", param="hosted") from error
    except NothingPaid as error:
        source = question.paid_from
        why = "" if question.paid is not None else ": no worker was seen in that time"
        raise Unprocessable(f"{source}: {error}{why}", param=source) from error
    return UnitCostFound(
        question, cost, len(models), sold.hosted_requests, sold.provisional_requests
    )


async def _hosted_rates(
    db: AsyncConnection, question: Question
) -> dict[str, HostedRate | dict[str, HostedRate]]:
    """By name, for every model or by model. Raises Unprocessable."""
    rates: dict[str, HostedRate | dict[str, HostedRate]] = {}
    for name in question.providers:
        found = await read_hosted_rates(db, name)
        if found is None:
            raise Unprocessable(f"hosted: there is no provider {name!r}", param="hosted")
        rates[name] = found
    return rates | dict(question.rates)

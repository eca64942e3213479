"""Many prices at once, all of them or none; looked at first where that is wanted, with what they
would do to every tenant's bill."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from asyncpg import PostgresError
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from billing.domain.price_book import Price, PriceBook
from billing.domain.price_effect import Effect, effects_of
from billing.postgres.price_usage import load_used
from billing.postgres.prices import instant_of, load_members, load_prices
from gateway.adapters.price_past import use_no_number_again
from gateway.adapters.tables import DIRECTORY_LOCK
from gateway.administration.plans import PlanVerbs
from gateway.administration.price_desk import Placed, PriceDesk, open_desk
from gateway.administration.price_file import Fault, FaultyFile, FileLine
from gateway.administration.price_writing import write_prices
from gateway.administration.store import Change, verb
from gateway.administration.store_errors import store_failure
from gateway.domain.price_news import LEAD_MS, WrittenPrice
from gateway.errors import Conflict, Unprocessable

USE_SHOWN = timedelta(days=30)
"""So much of the past is what the effect of new prices is shown on."""
AT_ONCE_MS = 60_000
"""A price that began less long ago begins at once: a long file takes its time."""


class Novelty(StrEnum):
    """What a price of a file is to the price book."""

    NEW = "new"
    """The first of its line."""
    CHANGED = "changed"
    SAME = "same"
    """It is there already, and nothing is written."""


@dataclass(frozen=True)
class ImportedPrice:
    """A line of the file and its price, as it is stored or would be."""

    line: int
    novelty: Novelty
    price: Price


class ImportVerbs(PlanVerbs):
    """The verbs on files of prices."""

    async def import_prices(self, actor: str, lines: Sequence[FileLine]) -> list[ImportedPrice]:
        """Add every price of a file as `set_price` does, or where any is refused, none. Raises
        FaultyFile, which says why of each line."""
        imported, news = await self._import(actor, lines, keep=True)
        await self._tell(news)
        return imported

    async def preview_prices(
        self, actor: str, lines: Sequence[FileLine]
    ) -> tuple[list[ImportedPrice], list[Effect]]:
        """What `import_prices` would do, which is done and taken back; and what each tenant's use
        of the last 30 days would cost from each instant on at which these prices make another
        difference. Raises FaultyFile."""
        imported, _ = await self._import(actor, lines, keep=False)
        added = [each.price for each in imported if each.novelty is not Novelty.SAME]
        try:
            return imported, await self._effect(added)
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise store_failure(error, committing=False) from error

    @verb
    async def _import(
        self, actor: str, lines: Sequence[FileLine], *, keep: bool
    ) -> tuple[list[ImportedPrice], list[WrittenPrice]]:
        in_use = await self._numbers_in_use()
        async with self._changing(actor) if keep else self._trying(actor) as change:
            await use_no_number_again(change.db, in_use)
            desk = await open_desk(change.db, [line.wanted for line in lines])
            placed: list[Placed] = []
            faults: list[Fault] = []
            for line in lines:
                try:
                    placed.append(_placed_once(desk, line))
                except (Unprocessable, Conflict) as error:
                    faults.append(Fault(line.number, error.message))
            if faults:
                raise FaultyFile(faults)
            prices, news = await write_prices(change, placed)
        found = zip(lines, placed, prices, strict=True)
        return [ImportedPrice(each.number, _novelty(at), price) for each, at, price in found], news

    @asynccontextmanager
    async def _trying(self, actor: str) -> AsyncIterator[Change]:
        """A change that is never committed."""
        async with self._engine.connect() as db:
            await db.execute(select(func.pg_advisory_xact_lock(DIRECTORY_LOCK)))
            yield Change(db, actor)

    async def _effect(self, added: Sequence[Price]) -> list[Effect]:
        until = instant_of(self._now_ms())
        async with self._reading() as db:
            used = await load_used(db, until - USE_SHOWN, until)
            prices, members = await load_prices(db), await load_members(db)
        changes = [
            *(each.effective_from_ms for each in prices),
            *(each.effective_from_ms for each in members),
        ]
        instants = _instants([each.effective_from_ms for each in added], changes, self._now_ms())
        before = PriceBook(prices, members)
        return effects_of(used, before, PriceBook([*prices, *added], members), instants)


def _instants(added: Sequence[int], changes: Sequence[int], now_ms: int) -> set[int]:
    """When the new prices begin, and when something else does after one of them has: what it takes
    the place of, or uncovers. What begins at once or as soon as may be is told as one."""
    soon_ms = now_ms + LEAD_MS
    first_ms = min(added, default=soon_ms)
    later = [at_ms for at_ms in changes if at_ms > first_ms]
    return {
        soon_ms if now_ms - AT_ONCE_MS <= at_ms < soon_ms else at_ms
        for at_ms in (first_ms, *added, *(later if added else ()))
    }


def _placed_once(desk: PriceDesk, line: FileLine) -> Placed:
    placed = desk.place(line.wanted, line.effective_from_ms)
    if placed.before is not None and not placed.is_new and not placed.before.id:
        raise Conflict("an earlier line says the same")
    return placed


def _novelty(placed: Placed) -> Novelty:
    if not placed.is_new:
        return Novelty.SAME
    return Novelty.NEW if placed.before is None else Novelty.CHANGED

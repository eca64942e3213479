"""List prices: what tenants pay for a model's tokens. A price is added, never changed.

The requests of the past have been rated. So a price begins when it is written or later, and one
that follows another no sooner than every gateway can know of it.
"""

from dataclasses import dataclass

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import PRICE_PICO_MAX, Price, PriceBook
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, instant_of, price_from
from gateway.adapters.price_news import publish_price
from gateway.administration.checks import EXPIRY_MAX_MS, check_currency
from gateway.administration.fleet import known_models
from gateway.administration.hosted import existing_hosted_provider
from gateway.administration.images import price_image
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, entry_id, page_of
from gateway.administration.store import Store, verb
from gateway.domain.hosted import PROVIDER_PREFIX
from gateway.domain.instants import shown
from gateway.domain.price_news import LEAD_MS, WrittenPrice
from gateway.errors import Conflict, NotFound, Unprocessable

SELF = "self"


@dataclass(frozen=True, kw_only=True)
class NewPrice:
    """A price to be set, in pico-units of the currency per token."""

    model: str
    provider: str = SELF
    currency: str
    input_pico: int
    cached_input_pico: int | None
    """None: a cached prompt token costs what any prompt token costs."""
    output_pico: int

    def is_as(self, price: Price) -> bool:
        """Whether `price` charges exactly this."""
        return all(
            getattr(price, name) == getattr(self, name) for name in self.__dataclass_fields__
        )


class PriceVerbs(Store):
    """The verbs on list prices."""

    async def set_price(
        self, actor: str, wanted: NewPrice, *, effective_from_ms: int | None = None
    ) -> Price:
        """Add a price that holds from then on, until the next of the same model, provider and
        currency.

        Without an instant a first price holds at once, one that follows another 2 s later; where
        what then holds is the same already, that is returned and nothing is written. With one,
        which must be 2 s ahead at least, the same twice is the first; another price from the same
        instant is a Conflict.
        """
        price, news = await self._set_price(actor, wanted, effective_from_ms)
        if self._redis is not None:
            await publish_price(self._redis, news, now_ms=self._now_ms())
        return price

    @verb
    async def _set_price(
        self, actor: str, wanted: NewPrice, effective_from_ms: int | None
    ) -> tuple[Price, WrittenPrice]:
        _check_amounts(wanted)
        check_currency(wanted.currency)
        async with self._changing(actor) as change:
            await _check_served(change.db, wanted)
            now_ms = await _now_ms(change.db)
            book = await _book(change.db, wanted)
            begins_ms = effective_from_ms
            if begins_ms is None:
                begins_ms = now_ms + LEAD_MS if _at(book, wanted, now_ms) else now_ms
            before = _at(book, wanted, begins_ms)
            is_there = before is not None and before.effective_from_ms == begins_ms
            if before is not None and wanted.is_as(before):
                if is_there or effective_from_ms is None:
                    return before, await _news(change.db, before.id, before.effective_from_ms)
            elif is_there:
                begins = shown(begins_ms)
                raise Conflict(f"another price of {wanted.model} begins at {begins} already")
            if effective_from_ms is not None:
                _check_ahead(effective_from_ms, now_ms)
            row = await change.db.execute(
                insert(price_table)
                .values(**vars(wanted), effective_from=instant_of(begins_ms))
                .returning(*PRICE_COLUMNS)
            )
            after = price_from(row.one())
            # Without a price before it nobody rates wrongly, only not yet.
            wrong_ms = begins_ms + (LEAD_MS if before is None else 0)
            news = await _news(change.db, after.id, wrong_ms)
            await change.audit(
                "price.set",
                "price",
                after.model,
                before=None if before is None else price_image(before),
                after=price_image(after),
            )
        return after, news

    @verb
    async def list_prices(
        self, limit: int = LIMIT_DEFAULT, cursor: str | None = None, *, model: str | None = None
    ) -> Page[Price]:
        """Prices of all models or one, the latest written first."""
        check_page_limit(limit)
        query = select(*PRICE_COLUMNS).order_by(price_table.c.id.desc()).limit(limit + 1)
        if model is not None:
            query = query.where(price_table.c.model == model)
        if cursor is not None:
            query = query.where(price_table.c.id < entry_id(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(str(row.id), price_from(row)) for row in rows], limit)


def _check_amounts(wanted: NewPrice) -> None:
    for name in ("input_pico", "cached_input_pico", "output_pico"):
        pico = getattr(wanted, name)
        if pico is not None and not 0 <= pico <= PRICE_PICO_MAX:
            field = name.removesuffix("_pico")
            raise Unprocessable(f"{field}: is out of range", param=field)


async def _check_served(db: AsyncConnection, wanted: NewPrice) -> None:
    """A misspelt name would price nothing and leave what was meant unpriced."""
    if wanted.model not in await known_models(db):
        raise Unprocessable(f"model: there is no model {wanted.model}", param="model")
    if wanted.provider == SELF:
        return
    if not wanted.provider.startswith(PROVIDER_PREFIX):
        raise Unprocessable("provider: must be self or hosted:<name>", param="provider")
    try:
        provider = await existing_hosted_provider(db, wanted.provider.removeprefix(PROVIDER_PREFIX))
    except NotFound as error:
        raise Unprocessable(f"provider: {error.message}", param="provider") from error
    if wanted.model not in provider.models:
        raise Unprocessable(
            f"provider: {wanted.provider} does not serve {wanted.model}", param="provider"
        )


async def _news(db: AsyncConnection, price_id: int, begins_ms: int) -> WrittenPrice:
    query = select(price_table.c.changed).where(price_table.c.id == price_id)
    return WrittenPrice((await db.execute(query)).scalar_one(), begins_ms)


async def _now_ms(db: AsyncConnection) -> int:
    """By the clock of Postgres, which every writer shares."""
    epoch = func.extract("epoch", func.clock_timestamp())
    now_ms = (await db.execute(select(func.floor(epoch * 1000)))).scalar_one()
    return int(now_ms)


async def _book(db: AsyncConnection, wanted: NewPrice) -> PriceBook:
    """The prices that `wanted` would stand among."""
    rows = await db.execute(
        select(*PRICE_COLUMNS).where(
            price_table.c.model == wanted.model,
            price_table.c.provider == wanted.provider,
            price_table.c.currency == wanted.currency,
            price_table.c.tenant_id.is_(None),
            price_table.c.plan.is_(None),
            price_table.c["class"].is_(None),
        )
    )
    return PriceBook(price_from(row) for row in rows)


def _at(book: PriceBook, wanted: NewPrice, at_ms: int) -> Price | None:
    return book.price_at(wanted.model, wanted.provider, wanted.currency, at_ms)


def _check_ahead(effective_from_ms: int, now_ms: int) -> None:
    earliest_ms = now_ms + LEAD_MS
    if not earliest_ms <= effective_from_ms <= EXPIRY_MAX_MS:
        raise Unprocessable(
            f"effective_from: must be {LEAD_MS // 1000} s from now or later, so not before "
            f"{shown(earliest_ms)}",
            param="effective_from",
        )

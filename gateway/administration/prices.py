"""Prices: what tenants pay for a model's tokens and requests. A price is added, never changed."""

import logging

from sqlalchemy import select

from billing.domain.price_book import Price
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, price_from
from gateway.adapters.price_news import publish_price
from gateway.adapters.price_past import PricePast, use_no_number_again
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, entry_id, page_of
from gateway.administration.price_desk import open_desk
from gateway.administration.price_wishes import NewPrice
from gateway.administration.price_writing import write_prices
from gateway.administration.store import Store, verb
from gateway.domain.price_news import WrittenPrice
from gateway.serving.ports import LedgerUnavailable

logger = logging.getLogger(__name__)


class PriceVerbs(Store):
    """The verbs on prices."""

    async def set_price(
        self, actor: str, wanted: NewPrice, *, effective_from_ms: int | None = None
    ) -> Price:
        """Add a price that holds from then on, until the next of its line: of its model, provider,
        currency, tenant, plan and class. One that is `withdrawn` ends its line.

        Without an instant it holds at once where it takes the place of none, else 2 s later; where
        what then holds is the same already, that is returned and nothing is written. With one, the
        same twice is the first, another price from the same instant is a Conflict; it must be 2 s
        ahead at least, or, also in the past, where none held that it would take the place of.
        """
        (price,), news = await self._set_price(actor, wanted, effective_from_ms)
        await self._tell(news)
        return price

    async def _tell(self, news: list[WrittenPrice]) -> None:
        if self._redis is not None:
            for each in news:
                await publish_price(self._redis, each, now_ms=self._now_ms())

    async def _numbers_in_use(self) -> dict[str, int]:
        """The newest id of each table that the store remembers; none where it is not asked. Until
        it is heard of again a gateway sees to it that no lost id is given to another."""
        if self._redis is None:
            return {}
        try:
            return await PricePast(self._redis).newest()
        except LedgerUnavailable as error:
            logger.warning("ids of lost prices are not known now (%s)", error)
            return {}

    @verb
    async def _set_price(
        self, actor: str, wanted: NewPrice, effective_from_ms: int | None
    ) -> tuple[list[Price], list[WrittenPrice]]:
        in_use = await self._numbers_in_use()
        async with self._changing(actor) as change:
            await use_no_number_again(change.db, in_use)
            desk = await open_desk(change.db, [wanted])
            placed = [desk.place(wanted, effective_from_ms)]
            return await write_prices(change, placed)

    @verb
    async def list_prices(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        model: str | None = None,
        tenant_id: str | None = None,
        plan: str | None = None,
    ) -> Page[Price]:
        """Prices of all models or one, of everybody or of a tenant or a plan, the latest written
        first."""
        check_page_limit(limit)
        query = select(*PRICE_COLUMNS).order_by(price_table.c.id.desc()).limit(limit + 1)
        for column, value in (
            (price_table.c.model, model),
            (price_table.c.tenant_id, tenant_id),
            (price_table.c.plan, plan),
        ):
            if value is not None:
                query = query.where(column == value)
        if cursor is not None:
            query = query.where(price_table.c.id < entry_id(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(str(row.id), price_from(row)) for row in rows], limit)

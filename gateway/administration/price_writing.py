"""Prices as they are written: all of a transaction in one statement, each with its audit entry."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, insert, select

from billing.domain.price_book import Price
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, instant_of, price_from
from gateway.administration.images import price_image
from gateway.administration.price_desk import Placed
from gateway.administration.store import Change
from gateway.domain.price_news import WrittenPrice


async def write_prices(
    change: Change, placed: Iterable[Placed]
) -> tuple[list[Price], list[WrittenPrice]]:
    """Write what is new of them, each with its audit entry: all of them as they now are, in order,
    and news of each."""
    wanted = list(placed)
    written = iter(await _insert(change, [each for each in wanted if each.is_new]))
    prices: list[Price] = []
    news: list[WrittenPrice] = []
    for each in wanted:
        if each.is_new:
            row = next(written)
            prices.append(price_from(row))
            news.append(WrittenPrice(row.changed, each.wrong_ms))
        elif each.before is not None:
            query = select(price_table.c.changed).where(price_table.c.id == each.before.id)
            changed = (await change.db.execute(query)).scalar_one()
            prices.append(each.before)
            news.append(WrittenPrice(changed, each.wrong_ms))
    return prices, news


async def _insert(change: Change, placed: Sequence[Placed]) -> Sequence[Row[Any]]:
    if not placed:
        return ()
    rows = (
        await change.db.execute(
            insert(price_table).returning(*PRICE_COLUMNS, sort_by_parameter_order=True),
            [
                {**each.wanted.columns(), "effective_from": instant_of(each.begins_ms)}
                for each in placed
            ],
        )
    ).all()
    written = {_place(price): price for price in map(price_from, rows)}
    for each, row in zip(placed, rows, strict=True):
        after = price_from(row)
        before = each.before
        if before is not None:
            before = written.get(_place(before), before)
        await change.audit(
            "price.withdraw" if after.withdrawn else "price.set",
            "price",
            after.model,
            before=None if before is None else price_image(before),
            after=price_image(after),
        )
    return rows


def _place(price: Price) -> tuple[object, ...]:
    return (
        *(price.model, price.provider, price.currency, price.tenant_id, price.plan),
        *(price.request_class, price.effective_from_ms),
    )

"""The lines of the price book in pages: which there are, and every price of each."""

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, and_, func, literal, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import Price
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, price_from

_columns = price_table.c


class LineKey(NamedTuple):
    """What names a line; an empty text is none. Lists are in its order."""

    model: str
    currency: str
    provider: str
    plan: str
    tenant_id: str
    request_class: str


class LineFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines; None takes any. `whose` is `list`, `plan` or `tenant`."""

    whose: str | None = None
    model: str | None = None
    currency: str | None = None
    tenant_id: str | None = None
    plan: str | None = None


_WHOSE = {
    "list": and_(_columns.tenant_id.is_(None), _columns.plan.is_(None)),
    "plan": _columns.plan.is_not(None),
    "tenant": _columns.tenant_id.is_not(None),
}
WHOSE = tuple(_WHOSE)


def _key() -> tuple[ColumnElement[Any], ...]:
    return (
        _columns.model,
        _columns.currency,
        _columns.provider,
        func.coalesce(_columns.plan, literal("")),
        func.coalesce(_columns.tenant_id, literal("")),
        func.coalesce(_columns["class"], literal("")),
    )


async def list_lines(
    db: AsyncConnection, wanted: LineFilter, *, limit: int, after: LineKey | None = None
) -> list[tuple[LineKey, list[Price]]]:
    """The lines in order, those after `after`, each with all its prices."""
    key = _key()
    chosen = select(*key).distinct().order_by(*key).limit(limit)
    for name in ("model", "currency", "tenant_id", "plan"):
        value = getattr(wanted, name)
        if value is not None:
            chosen = chosen.where(_columns[name] == value)
    if wanted.whose is not None:
        chosen = chosen.where(_WHOSE[wanted.whose])
    if after is not None:
        chosen = chosen.where(tuple_(*key) > tuple_(*map(literal, after)))
    keys = [LineKey(*row) for row in await db.execute(chosen)]
    if not keys:
        return []
    of_these = select(*PRICE_COLUMNS).where(tuple_(*key).in_(keys))
    prices: defaultdict[LineKey, list[Price]] = defaultdict(list)
    for row in await db.execute(of_these):
        price = price_from(row)
        prices[_key_of(price)].append(price)
    return [(each, prices[each]) for each in keys]


def _key_of(price: Price) -> LineKey:
    return LineKey(
        price.model,
        price.currency,
        price.provider,
        price.plan or "",
        price.tenant_id or "",
        price.request_class or "",
    )

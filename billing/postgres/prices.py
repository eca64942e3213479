"""Prices, and who is on which plan, as Postgres holds them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from billing.domain.price_book import Membership, Price, PriceBook
from billing.postgres.price_tables import plan_member, price

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

PRICE_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(column for column in price.c if column.name != "class"),
    price.c["class"].label("request_class"),
)
MEMBER_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(plan_member.c)


async def load_prices(db: AsyncConnection) -> list[Price]:
    """Every price."""
    return [price_from(row) for row in await db.execute(select(*PRICE_COLUMNS))]


async def load_members(db: AsyncConnection) -> list[Membership]:
    """Every tenant's plans."""
    return [member_from(row) for row in await db.execute(select(*MEMBER_COLUMNS))]


async def load_book(db: AsyncConnection) -> PriceBook:
    """Every price and every plan."""
    return PriceBook(await load_prices(db), await load_members(db))


def price_from(row: Row[Any]) -> Price:
    """The price of a row of PRICE_COLUMNS."""
    return Price(
        id=row.id,
        model=row.model,
        provider=row.provider,
        currency=row.currency,
        tenant_id=row.tenant_id,
        plan=row.plan,
        request_class=row.request_class,
        input_pico=row.input_pico or 0,
        cached_input_pico=row.cached_input_pico,
        output_pico=row.output_pico or 0,
        reasoning_pico=row.reasoning_pico,
        request_pico=row.request_pico,
        effective_from_ms=unix_ms_of(row.effective_from),
        withdrawn=row.withdrawn,
    )


def member_from(row: Row[Any]) -> Membership:
    """The plan of a row of MEMBER_COLUMNS."""
    return Membership(
        tenant_id=row.tenant_id,
        plan=row.plan,
        effective_from_ms=unix_ms_of(row.effective_from),
    )


def instant_of(at_ms: int) -> datetime:
    """Unix milliseconds as Postgres takes them, exactly."""
    return _EPOCH + at_ms * _MILLISECOND


def unix_ms_of(instant: datetime) -> int:
    """An instant as Postgres gives it, in whole Unix milliseconds."""
    return (instant - _EPOCH) // _MILLISECOND

"""Prices as Postgres holds them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, Row

from billing.domain.price_book import Price
from billing.postgres.tables import price

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

PRICE_COLUMNS: tuple[Column[Any], ...] = tuple(price.c)


def price_from(row: Row[Any]) -> Price:
    """The price of a row of PRICE_COLUMNS."""
    return Price(
        id=row.id,
        model=row.model,
        provider=row.provider,
        currency=row.currency,
        input_pico=row.input_pico,
        cached_input_pico=row.cached_input_pico,
        output_pico=row.output_pico,
        effective_from_ms=unix_ms_of(row.effective_from),
    )


def instant_of(at_ms: int) -> datetime:
    """Unix milliseconds as Postgres takes them, exactly."""
    return _EPOCH + at_ms * _MILLISECOND


def unix_ms_of(instant: datetime) -> int:
    """An instant as Postgres gives it, in whole Unix milliseconds."""
    return (instant - _EPOCH) // _MILLISECOND

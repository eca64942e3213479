"""Usage and its cost in buckets of time: the sums of the records, to the pico. `usage_sources` says
what they are read from."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_sources import BUCKET, COUNTS, Chosen

GROUPS = ("tenant_id", "api_key_id", "model", "class")
"""What usage can be grouped by within a bucket."""
_TOKENS = COUNTS[1:5]


def _sums(names: Sequence[str]) -> str:
    return ", ".join(f"CAST(sum({name}) AS numeric) AS {name}" for name in names)


class TokenSum(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one group in one bucket, which begins at or after `start_s` (Unix seconds)."""

    start_s: int
    group: tuple[str, ...]
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    provisional_requests: int


class CostSum(msgspec.Struct, frozen=True, kw_only=True):
    """What one group in one bucket cost, of one model and price. `unpriced_requests` are to be paid
    for, and nobody knows yet what they cost: they are in no amount."""

    start_s: int
    group: tuple[str, ...]
    model: str
    price_id: int | None
    currency: str | None
    billable: bool
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_pico: int
    unpriced_requests: int
    provisional_requests: int


class SpentSum(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's key cost with one model, and how many of its requests are in no amount."""

    tenant_id: str
    api_key_id: str
    model: str
    cost_pico: int
    unpriced_requests: int


async def sum_tokens(
    db: AsyncConnection, chosen: Chosen, *, width: timedelta, by: Sequence[str]
) -> list[TokenSum]:
    """By bucket, `width` long from the epoch on, and within each by some of GROUPS, in order."""
    counts = ("requests", *_TOKENS[:3])
    return await _read(db, chosen, TokenSum, width=width, by=by, more=(), sums=_sums(counts))


async def sum_costs(
    db: AsyncConnection, chosen: Chosen, *, width: timedelta, by: Sequence[str]
) -> list[CostSum]:
    """The same of what it cost, each model and price apart."""
    more = ("model", "price_id", "currency", "billable")
    unpriced = (
        "CAST(coalesce(sum(unpriced_requests) FILTER (WHERE billable), 0) AS bigint)"
        " AS unpriced_requests"
    )
    sums = f"{_sums(('requests', *_TOKENS, 'cost_pico'))}, {unpriced}"
    return await _read(db, chosen, CostSum, width=width, by=by, more=more, sums=sums)


async def sum_spent(db: AsyncConnection, chosen: Chosen) -> list[SpentSum]:
    """What each key of each tenant cost with each model in the whole time."""
    counted, values = chosen.counted(("tenant_id", "api_key_id", "model"))
    statement = f"""{counted} SELECT tenant_id, api_key_id, model,
        {_sums(("cost_pico",))},
        coalesce(sum(unpriced_requests) FILTER (WHERE billable), 0) AS unpriced_requests
        FROM counted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""  # noqa: S608 - names of columns, as above
    rows = (await db.execute(text(statement), values)).mappings()
    return [SpentSum(**_whole(row)) for row in rows]


async def _read(
    db: AsyncConnection,
    chosen: Chosen,
    kind: Any,
    *,
    width: timedelta,
    by: Sequence[str],
    more: Sequence[str],
    sums: str,
) -> list[Any]:
    unknown = set(by) - set(GROUPS)
    if unknown:
        raise ValueError(f"usage is not grouped by {sorted(unknown)}")
    counted, values = chosen.counted((*by, *more), width=width)
    group = ", ".join(f"CAST({name} AS text)" for name in by)
    names = ", ".join(("start_s", "group_by", *more))
    statement = f"""{counted} SELECT {BUCKET} AS start_s,
        CAST(ARRAY[{group}] AS text[]) AS group_by{"".join(f", {name}" for name in more)}, {sums},
        CAST(coalesce(sum(requests) FILTER (WHERE NOT final), 0) AS bigint) AS provisional_requests
        FROM counted GROUP BY {names} ORDER BY {names}"""  # noqa: S608 - names of columns, as above
    rows = (await db.execute(text(statement), values | {"width": width})).mappings()
    found = []
    for row in rows:
        fields = _whole(row)
        found.append(kind(group=tuple(fields.pop("group_by")), **fields))
    return found


def _whole(row: Any) -> dict[str, Any]:
    """A row whose sums, which Postgres makes `numeric`, are whole numbers again."""
    counts = {"requests", *_TOKENS, "cost_pico", "unpriced_requests"}
    return {name: int(value) if name in counts else value for name, value in row.items()}

"""Usage and its cost in buckets of time, from roll-ups: the sums of the records, to the pico.

Whole quarters of an hour come from their roll-ups. Quarters that are marked to be made anew, and
the ends of a period that are no whole quarter, come from the records. One statement, so that what
is made anew meanwhile is counted once. Buckets of less than a quarter are summed up from records
alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

QUARTER = timedelta(minutes=15)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GROUPS = ("tenant_id", "api_key_id", "model", "class")
"""What usage can be grouped by within a bucket."""
_KEYS = (*GROUPS, "currency", "price_id", "billable", "final")
_TOKENS = ("prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens")
_ROLLED = ", ".join((*_KEYS, "requests", *_TOKENS, "cost_pico", "unpriced_requests"))
_RAW = ", ".join(
    (
        *(f"record.{name}" for name in _KEYS),
        "1 AS requests",
        *(f"record.{name}" for name in _TOKENS),
        "coalesce(record.cost_pico, 0) AS cost_pico",
        "CAST(record.cost_pico IS NULL AS integer) AS unpriced_requests",
    )
)
_COUNTED = f"""
WITH marked AS MATERIALIZED (
    SELECT DISTINCT bucket, tenant_id FROM usage_rollup_dirty
    WHERE bucket >= :first AND bucket < :last{{of_marks}}
), counted AS (
    SELECT bucket AS at, {_ROLLED} FROM usage_rollup AS record
    WHERE bucket >= :first AND bucket < :last{{chosen}}
        AND (bucket, tenant_id) NOT IN (SELECT bucket, tenant_id FROM marked)
    UNION ALL SELECT record.admitted_at, {_RAW} FROM marked JOIN usage_record AS record
        ON record.tenant_id = marked.tenant_id AND record.admitted_at >= marked.bucket
        AND record.admitted_at < marked.bucket + interval '15 minutes'{{chosen}}
    UNION ALL SELECT record.admitted_at, {_RAW} FROM usage_record AS record
    WHERE record.admitted_at >= :since AND record.admitted_at < :first{{chosen}}
    UNION ALL SELECT record.admitted_at, {_RAW} FROM usage_record AS record
    WHERE record.admitted_at >= :last AND record.admitted_at < :until{{chosen}}
)
"""  # noqa: S608 - names of columns, from above
BUCKET = (
    "CAST(extract(epoch FROM date_bin(CAST(:width AS interval), at,"
    " timestamptz '1970-01-01 00:00:00+00')) AS bigint)"
)
"""The bucket, `:width` long, that a counted record is in, by its beginning in Unix seconds."""


def _sums(names: Sequence[str]) -> str:
    return ", ".join(f"CAST(sum({name}) AS numeric) AS {name}" for name in names)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which records: admitted at or after `since` and before `until`; None takes any."""

    since: datetime
    until: datetime
    tenants: Sequence[str] | None = None
    api_keys: Sequence[str] | None = None
    models: Sequence[str] | None = None
    request_class: str | None = None
    currency: str | None = None
    """With those whose currency nobody knows."""

    def counted(self, *, whole_quarters: bool = True) -> tuple[str, dict[str, Any]]:
        """The beginning of a statement that names these records `counted`, and its values. Where
        not `whole_quarters`, each record by itself, at its own instant."""
        first, last = -(-(self.since - _EPOCH) // QUARTER), (self.until - _EPOCH) // QUARTER
        bounds = (_EPOCH + first * QUARTER, _EPOCH + last * QUARTER)
        if first > last or not whole_quarters:
            bounds = (self.until, self.until)
        values: dict[str, Any] = {
            "since": self.since, "until": self.until, "first": bounds[0], "last": bounds[1],
        }  # fmt: skip
        chosen = ""
        for name, column, wanted in (
            ("tenants", "tenant_id", self.tenants),
            ("api_keys", "api_key_id", self.api_keys),
            ("models", "model", self.models),
        ):
            if wanted is not None:
                chosen += f" AND record.{column} = ANY (CAST(:{name} AS text[]))"
                values[name] = list(wanted)
        if self.request_class is not None:
            chosen += " AND record.class = :class"
            values["class"] = self.request_class
        if self.currency is not None:
            chosen += " AND (record.currency = :currency OR record.currency IS NULL)"
            values["currency"] = self.currency
        marks = "" if self.tenants is None else " AND tenant_id = ANY (CAST(:tenants AS text[]))"
        return _COUNTED.format(chosen=chosen, of_marks=marks), values


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
    counted, values = chosen.counted()
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
    counted, values = chosen.counted(whole_quarters=width % QUARTER == timedelta(0))
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

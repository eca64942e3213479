"""Usage for people to look at: the largest groups over time, and all groups by size, in one look.

What is counted, and from where, is `usage_buckets`': the sums of the records. Ten thousand groups
are drawn as eight and the rest, and listed in pages, so that an answer's size does not grow with
the number of tenants.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_buckets import BUCKET, GROUPS, QUARTER, Chosen

TOP = 8
"""Groups that are drawn by themselves."""


class Measure(StrEnum):
    """What groups are drawn and ordered by."""

    TOKENS = "tokens"
    """In and out."""
    INPUT = "input"
    CACHED = "cached"
    OUTPUT = "output"
    REQUESTS = "requests"


_SIZES = {
    Measure.TOKENS: "prompt_tokens + output_tokens",
    Measure.INPUT: "prompt_tokens",
    Measure.CACHED: "cached_prompt_tokens",
    Measure.OUTPUT: "output_tokens",
    Measure.REQUESTS: "requests",
}
_COUNTS = ("requests", "prompt_tokens", "cached_prompt_tokens", "output_tokens")
_ALSO = ("provisional_requests", "billable_requests", "unpriced_requests", "cost_pico")
_ADDED = ", ".join(f"sum({name}) AS {name}" for name in (*_COUNTS, *_ALSO))
_CELLS = ", ".join(
    (
        *(f"sum({name}) AS {name}" for name in (*_COUNTS, "cost_pico")),
        "coalesce(sum(requests) FILTER (WHERE NOT final), 0) AS provisional_requests",
        "coalesce(sum(requests) FILTER (WHERE billable), 0) AS billable_requests",
        "coalesce(sum(unpriced_requests) FILTER (WHERE billable), 0) AS unpriced_requests",
    )
)
_STATEMENT = f"""{{counted}}, cells AS MATERIALIZED (
    SELECT {BUCKET} AS start_s, CAST({{by}} AS text) AS name, currency, {_CELLS}
    FROM counted GROUP BY 1, 2, 3
), sizes AS MATERIALIZED (
    SELECT name, CAST(sum({{size}}) AS numeric) AS size FROM cells GROUP BY name
), top AS (
    SELECT name FROM sizes ORDER BY size DESC, name LIMIT {TOP}
), page AS (
    SELECT name, size FROM sizes{{after}} ORDER BY size DESC, name LIMIT :rows
)
SELECT 'point' AS kind, start_s, top.name, CAST(NULL AS text) AS currency,
    CAST(sum({{size}}) AS numeric) AS size, {_ADDED}
FROM cells LEFT JOIN top ON top.name = cells.name GROUP BY start_s, top.name
UNION ALL SELECT 'group', NULL, cells.name, currency, page.size, {_ADDED}
FROM cells JOIN page ON page.name = cells.name GROUP BY cells.name, currency, page.size
UNION ALL SELECT 'whole', NULL, NULL, currency, (SELECT count(*) FROM sizes), {_ADDED}
FROM cells GROUP BY currency
ORDER BY kind, size DESC, name, start_s, currency
"""  # noqa: S608 - names of columns, from above


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What was used, in sums. `costs` are pico-units by currency, never added; `unpriced_requests`
    are to be paid for and in none of them."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    output_tokens: int = 0
    provisional_requests: int = 0
    billable_requests: int = 0
    unpriced_requests: int = 0
    costs: Mapping[str, int] = msgspec.field(default_factory=dict)


class Place(msgspec.Struct, frozen=True):
    """Where in the list of groups, the largest first, one stands."""

    size: int
    name: str


class UsageChart(msgspec.Struct, frozen=True, kw_only=True):
    """One look at usage. `points` are sizes by the start of a bucket (Unix seconds) and then by
    group, those of `top`, the largest first, and None for all the rest; a bucket without usage has
    none. `groups` are a page of all of them, the largest first, `next` where the page after it
    begins; `whole` is of all together."""

    top: tuple[str, ...]
    points: Mapping[int, Mapping[str | None, int]]
    groups: tuple[tuple[str, Counts], ...]
    next: Place | None
    whole: Counts
    group_count: int


async def read_chart(
    db: AsyncConnection,
    chosen: Chosen,
    *,
    width: timedelta,
    by: str,
    measure: Measure,
    limit: int,
    after: Place | None = None,
) -> UsageChart:
    """Usage by one of GROUPS in buckets of whole quarters of an hour from the epoch on. Raises
    ValueError for a group or a width that is none."""
    if by not in GROUPS or width % QUARTER:
        raise ValueError(f"usage is not summed up by {by} and {width}")
    counted, values = chosen.counted()
    values |= {"width": width, "rows": limit + 1}
    behind = ""
    if after is not None:
        behind = " WHERE size < :after_size OR (size = :after_size AND name > :after_name)"
        values |= {"after_size": Decimal(after.size), "after_name": after.name}
    statement = _STATEMENT.format(counted=counted, by=by, size=_SIZES[measure], after=behind)
    rows = (await db.execute(text(statement), values)).mappings().all()
    return _chart([dict(row) for row in rows], limit)


def _chart(rows: Iterable[Mapping[str, Any]], limit: int) -> UsageChart:
    points: dict[int, dict[str | None, int]] = {}
    drawn: dict[str, int] = {}
    found: dict[str, list[Mapping[str, Any]]] = {}
    whole: list[Mapping[str, Any]] = []
    for row in rows:
        match row["kind"]:
            case "point":
                points.setdefault(row["start_s"], {})[row["name"]] = int(row["size"])
                if row["name"] is not None:
                    drawn[row["name"]] = drawn.get(row["name"], 0) + int(row["size"])
            case "group":
                found.setdefault(row["name"], []).append(row)
            case _:
                whole.append(row)
    listed = list(found.items())
    last = None
    if len(listed) > limit:
        name, of_last = listed[limit - 1]
        last = Place(int(of_last[0]["size"]), name)
    return UsageChart(
        top=tuple(sorted(drawn, key=lambda name: (-drawn[name], name))),
        points=points,
        groups=tuple((name, _counts(each)) for name, each in listed[:limit]),
        next=last,
        whole=_counts(whole),
        group_count=int(whole[0]["size"]) if whole else 0,
    )


def _counts(rows: Iterable[Mapping[str, Any]]) -> Counts:
    sums = dict.fromkeys((*_COUNTS, *_ALSO[:3]), 0)
    costs: dict[str, int] = {}
    for row in rows:
        for name in sums:
            sums[name] += int(row[name])
        # Where nothing has a price yet, or nobody is to pay, there is no amount, not one of 0.
        if row["currency"] is not None and (
            row["cost_pico"] or row["billable_requests"] > row["unpriced_requests"]
        ):
            costs[row["currency"]] = int(row["cost_pico"])
    return Counts(**sums, costs=costs)

"""Usage for people to look at: the largest groups over time, and all groups by size, in one look.

What is counted, and from where, is `usage_sources`': the sums of the records. Ten thousand groups
are drawn as eight and the rest, and listed in pages, so that an answer's size does not grow with
the number of tenants.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_buckets import GROUPS
from billing.postgres.usage_sources import BUCKET, QUARTER, Chosen

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
_ALSO = ("provisional_requests", "billable_requests", "unpriced_requests")
_SUMS = ", ".join(
    (
        *(f"CAST(sum({name}) AS numeric) AS {name}" for name in (*_COUNTS, "cost_pico")),
        "coalesce(sum(requests) FILTER (WHERE NOT final), 0) AS provisional_requests",
        "coalesce(sum(requests) FILTER (WHERE billable), 0) AS billable_requests",
        "coalesce(sum(unpriced_requests) FILTER (WHERE billable), 0) AS unpriced_requests",
    )
)
_LISTED = f"""{{counted}}, sizes AS MATERIALIZED (
    SELECT {{by}} AS name, any_value(tenant_id) AS tenant_id, CAST(sum({{size}}) AS numeric) AS size
    FROM counted GROUP BY {{by}}
), top AS (
    SELECT * FROM sizes ORDER BY size DESC, name LIMIT {TOP}
), page AS (
    SELECT * FROM sizes{{after}} ORDER BY size DESC, name LIMIT :rows
)
SELECT 'top' AS kind, name, tenant_id, size FROM top
UNION ALL SELECT 'group', name, tenant_id, size FROM page
UNION ALL SELECT 'count', NULL, NULL, count(*) FROM sizes ORDER BY kind, size DESC, name
"""  # noqa: S608 - names of columns, from above
_GROUPS = f"""{{counted}} SELECT {{by}} AS name, currency, {_SUMS} FROM counted GROUP BY 1, 2
"""  # noqa: S608 - as above
_POINTS = f"""{{counted}} SELECT {BUCKET} AS start_s, {{by}} AS name,
    CAST(sum({{size}}) AS numeric) AS size FROM counted GROUP BY 1, 2
"""  # noqa: S608 - as above
_WHOLE = f"""{{counted}} SELECT {BUCKET} AS start_s, currency,
    CAST(sum({{size}}) AS numeric) AS size, {_SUMS} FROM counted GROUP BY 1, 2
"""  # noqa: S608 - as above


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


@dataclass(frozen=True)
class _Listed:
    """A group with its size, and the tenant it is of where it is a tenant's or a key's."""

    name: str
    tenant_id: str | None
    size: int


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
    """Usage by one of GROUPS in buckets of whole quarters of an hour from the epoch on, all as of
    one instant: `db` is at the beginning of a transaction. Raises ValueError for a group or a
    width that is none.

    Sizes are looked at of all groups, everything else only of those that are shown.
    """
    if by not in GROUPS or width % QUARTER:
        raise ValueError(f"usage is not summed up by {by} and {width}")
    await db.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    reading = _Reading(db, chosen, width, by, _SIZES[measure])
    top, listed, count = await reading.listed(limit + 1, after)
    page = listed[:limit]
    last = page[-1] if page and len(listed) > limit else None
    found = await reading.groups(page, are_all=len(page) == count)
    points, whole = await reading.whole()
    for start_s, name, size in await reading.points(top):
        at = points.setdefault(start_s, {None: 0})
        at[name] = size
        at[None] -= size
    drawn = {each.name for each in top}
    return UsageChart(
        top=tuple(each.name for each in top),
        points={at: _without_rest(each, len(drawn) < count) for at, each in points.items()},
        groups=tuple((each.name, _counts(found.get(each.name, ()))) for each in page),
        next=None if last is None else Place(last.size, last.name),
        whole=_counts(whole),
        group_count=count,
    )


class _Reading:
    """The statements of one look."""

    def __init__(
        self, db: AsyncConnection, chosen: Chosen, width: timedelta, by: str, size: str
    ) -> None:
        self._db = db
        self._chosen = chosen
        self._width = width
        self._by = by
        self._size = size

    async def listed(
        self, rows: int, after: Place | None
    ) -> tuple[list[_Listed], list[_Listed], int]:
        """The largest groups, so many of those behind `after`, and how many there are in all."""
        counted, values = self._chosen.counted((self._by,))
        behind = ""
        if after is not None:
            behind = " WHERE size < :after_size OR (size = :after_size AND name > :after_name)"
            values |= {"after_size": Decimal(after.size), "after_name": after.name}
        found: dict[str, list[_Listed]] = {"top": [], "group": []}
        count = 0
        for row in await self._read(_LISTED, counted, values | {"rows": rows}, after=behind):
            if row["kind"] == "count":
                count = int(row["size"])
            else:
                each = _Listed(row["name"], row["tenant_id"], int(row["size"]))
                found[row["kind"]].append(each)
        return found["top"], found["group"], count

    async def groups(
        self, page: Sequence[_Listed], *, are_all: bool
    ) -> dict[str, list[Mapping[str, Any]]]:
        """The sums of some groups, by currency. To name `are_all` groups would take longer."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        if page:
            chosen = self._chosen if are_all else self._of(page)
            counted, values = chosen.counted((self._by, "currency"))
            for row in await self._read(_GROUPS, counted, values):
                found.setdefault(row["name"], []).append(row)
        return found

    async def points(self, top: Sequence[_Listed]) -> list[tuple[int, str, int]]:
        """The sizes of some groups over time."""
        if not top:
            return []
        counted, values = self._of(top).counted((self._by,), width=self._width)
        rows = await self._read(_POINTS, counted, values | {"width": self._width})
        return [(row["start_s"], row["name"], int(row["size"])) for row in rows]

    async def whole(
        self,
    ) -> tuple[dict[int, dict[str | None, int]], list[Mapping[str, Any]]]:
        """The sizes of everything over time, under None, and its sums."""
        counted, values = self._chosen.counted(("currency",), width=self._width)
        rows = await self._read(_WHOLE, counted, values | {"width": self._width})
        points: dict[int, dict[str | None, int]] = {}
        for row in rows:
            at = points.setdefault(row["start_s"], {None: 0})
            at[None] += int(row["size"])
        return points, rows

    def _of(self, listed: Sequence[_Listed]) -> Chosen:
        """What was chosen, of these groups alone."""
        names = [each.name for each in listed]
        match self._by:
            case "tenant_id":
                return replace(self._chosen, tenants=names)
            case "api_key_id":
                tenants = {each.tenant_id for each in listed if each.tenant_id is not None}
                return replace(self._chosen, api_keys=names, tenants=sorted(tenants))
            case "model":
                return replace(self._chosen, models=names)
            case _:
                return self._chosen

    async def _read(
        self, statement: str, counted: str, values: Mapping[str, Any], *, after: str = ""
    ) -> list[Mapping[str, Any]]:
        whole = statement.format(counted=counted, by=self._by, size=self._size, after=after)
        rows = (await self._db.execute(text(whole), values)).mappings()
        return [dict(row) for row in rows]


def _without_rest(point: Mapping[str | None, int], has_rest: bool) -> dict[str | None, int]:
    """A bucket's sizes: of the rest where there are other groups than those that are drawn."""
    return {name: size for name, size in point.items() if name is not None or (has_rest and size)}


def _counts(rows: Iterable[Mapping[str, Any]]) -> Counts:
    sums = dict.fromkeys((*_COUNTS, *_ALSO), 0)
    costs: dict[str, int] = {}
    priced: dict[str, int] = {}
    for row in rows:
        for name in sums:
            sums[name] += int(row[name])
        if (currency := row["currency"]) is not None:
            costs[currency] = costs.get(currency, 0) + int(row["cost_pico"])
            paid = int(row["billable_requests"]) - int(row["unpriced_requests"])
            priced[currency] = priced.get(currency, 0) + paid
    # Where nothing has a price yet, or nobody is to pay, there is no amount, not one of 0.
    known = {name: cost for name, cost in costs.items() if cost or priced[name] > 0}
    return Counts(**sums, costs=known)

"""What the unit cost is worked out from: engines' work out of attempts, what was sold out of
records, and how long workers were seen out of samples. Each in one statement that adds up in
Postgres; periods are of admissions, as an invoice's are, and days and hours those of UTC."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.unit_cost.allocation import Cell
from billing.domain.unit_cost.hosted import HostedRate
from billing.domain.unit_cost.paid_time import SeenAlive, day_of
from billing.domain.unit_cost.question import CostBy
from billing.domain.unit_cost.report import Sold
from billing.domain.unit_cost.step_model import EngineWork

ALIVE_GAP_MS = 16 * 60_000
"""A worker is taken to have been there between two samples that are no further apart. Older ones
are thinned out to one in a quarter of an hour."""


class WorkRead(NamedTuple):
    """Engines' work: by span and group, and again by hour of the day."""

    cells: list[Cell]
    hours: dict[int, EngineWork]


class SoldRead(NamedTuple):
    """Records that the pool served, and how many hosted providers did."""

    sold: list[Sold]
    hosted_requests: int
    provisional_requests: int
    """Of both: those whose account another gateway gave, which their own may still replace."""


_GROUP = {
    CostBy.TENANT: "r.tenant_id",
    CostBy.MODEL: "r.model",
    CostBy.CLASS: "r.class",
    CostBy.DAY: "to_char(r.admitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    CostBy.HOUR: "to_char(r.admitted_at AT TIME ZONE 'UTC', 'HH24:00')",
}
_DAY = "floor(extract(epoch FROM r.admitted_at) / 86400)::int"
_PERIOD = "r.admitted_at >= :since AND r.admitted_at < :until"
_MODEL = "(CAST(:model AS text) IS NULL OR r.model = :model)"

_WORK = """
WITH attempt AS (
    SELECT {span} AS span, {group} AS "group",
        extract(hour FROM r.admitted_at AT TIME ZONE 'UTC')::int AS hour,
        a.prompt_tokens::bigint AS prompt, a.output_tokens::bigint AS output,
        least(a.prompt_tokens, coalesce(a.cached_prompt_tokens,
            CASE WHEN r.attempts = 1 THEN r.cached_prompt_tokens ELSE 0 END))::bigint AS cached,
        greatest(0, extract(epoch FROM a.ended_at - a.started_at) * 1000)::bigint AS held_ms,
        greatest(0, extract(epoch FROM a.ended_at
            - greatest(a.started_at, coalesce(r.first_token_at, a.started_at))) * 1000)::bigint
            AS decode_ms
    FROM usage_record AS r
    JOIN usage_attempt AS a ON a.request_id = r.request_id AND a.admitted_at = r.admitted_at
    WHERE {period} AND a.admitted_at >= :since AND a.admitted_at < :until
        AND a.provider = 'self' AND {model}
)
SELECT grouping(hour) AS by_group, span, "group", hour,
    count(*) FILTER (WHERE prompt > 0) AS prefills,
    sum(prompt - cached) AS uncached_tokens,
    sum((prompt - cached) * (prompt + cached)) AS attended_twice,
    sum(output) AS output_tokens,
    sum(2 * prompt * held_ms + output * decode_ms) AS token_ms_twice,
    coalesce(sum(decode_ms) FILTER (WHERE output > 1), 0) AS decode_ms,
    coalesce(sum(output - 1) FILTER (WHERE output > 1), 0) AS decode_gaps
FROM attempt GROUP BY GROUPING SETS ((span, "group"), (hour))
"""
"""`uncached * (2 * cached + uncached)` is `(prompt - cached) * (prompt + cached)`."""

_SOLD = """
SELECT {group} AS "group", r.model, r.currency, r.provider = 'self' AS own,
    count(*) FILTER (WHERE NOT r.final) AS provisional, count(*) AS requests,
    sum(r.prompt_tokens) AS prompt_tokens,
    sum(least(r.prompt_tokens, r.cached_prompt_tokens)) AS cached_prompt_tokens,
    sum(r.output_tokens) AS output_tokens, coalesce(sum(r.cost_pico), 0) AS cost_pico,
    count(*) FILTER (WHERE r.billable AND r.cost_pico IS NULL) AS unpriced_requests
FROM usage_record AS r WHERE {period} AND {model} GROUP BY 1, 2, 3, 4
"""

_SEEN = """
WITH sample AS (
    SELECT s.worker_id, s.taken_at,
        lag(s.taken_at) OVER (PARTITION BY s.worker_id ORDER BY s.turn) AS before
    FROM engine_sample AS s LEFT JOIN worker AS w ON w.id = s.worker_id
    WHERE s.taken_at >= CAST(:since AS timestamptz) - CAST(:gap AS interval)
        AND s.taken_at < CAST(:until AS timestamptz) + CAST(:gap AS interval)
        AND (CAST(:model AS text) IS NULL OR w.model = :model)
), island AS (
    SELECT worker_id, taken_at, count(*) FILTER (
        WHERE before IS NULL OR taken_at - before > CAST(:gap AS interval)
    ) OVER (PARTITION BY worker_id ORDER BY taken_at, before NULLS FIRST) AS island
    FROM sample
)
SELECT worker_id, (extract(epoch FROM min(taken_at)) * 1000)::bigint AS start_ms,
    (extract(epoch FROM max(taken_at)) * 1000)::bigint AS end_ms
FROM island GROUP BY worker_id, island ORDER BY 1, 2
"""

_HOSTED = """
SELECT models FROM hosted_provider WHERE name = :name AND removed_at IS NULL
"""


async def read_work(
    connection: AsyncConnection,
    since: datetime,
    until: datetime,
    *,
    by: CostBy,
    model: str | None,
    by_day: bool,
) -> WorkRead:
    """Of attempts on the pool's own workers. With `by_day` a span is a day, numbered from that of
    `since`; else there is one."""
    first_day = day_of(int(since.timestamp()) * 1000)
    query = _WORK.format(
        span=f"{_DAY} - {first_day}" if by_day else "0",
        group=_GROUP[by],
        period=_PERIOD,
        model=_MODEL,
    )
    rows = await connection.execute(text(query), _chosen(since, until, model))
    cells: list[Cell] = []
    hours: defaultdict[int, EngineWork] = defaultdict(EngineWork)
    for by_group, span, group, hour, *counts in rows:
        work = EngineWork(*(int(count) for count in counts))
        if by_group:
            cells.append(Cell(span, group, work))
        else:
            hours[hour] = work
    return WorkRead(cells, dict(hours))


async def read_sold(
    connection: AsyncConnection,
    since: datetime,
    until: datetime,
    *,
    by: CostBy,
    model: str | None,
) -> SoldRead:
    """By group, model and currency."""
    query = _SOLD.format(group=_GROUP[by], period=_PERIOD, model=_MODEL)
    sold: list[Sold] = []
    hosted = provisional = 0
    for row in await connection.execute(text(query), _chosen(since, until, model)):
        group, model_id, currency, own, not_final, requests, *counts = row
        provisional += not_final
        if own:
            whole = (int(count) for count in counts)
            sold.append(Sold(group, model_id, currency, requests, *whole))
        else:
            hosted += requests
    return SoldRead(sold, hosted, provisional)


async def read_seen(
    connection: AsyncConnection, since: datetime, until: datetime, *, model: str | None
) -> list[SeenAlive]:
    """When workers, of that model or all, were there: from a sample to the last that follows it
    with no gap above ALIVE_GAP_MS. What begins before or ends after the time is told whole."""
    chosen = {**_chosen(since, until, model), "gap": timedelta(milliseconds=ALIVE_GAP_MS)}
    rows = await connection.execute(text(_SEEN), chosen)
    return [SeenAlive(row.worker_id, row.start_ms, row.end_ms) for row in rows]


async def read_hosted_rates(connection: AsyncConnection, name: str) -> dict[str, HostedRate] | None:
    """A provider's prices in USD as they are set now, by our model; None where there is no such
    provider. A model without a price is not in it."""
    models: dict[str, Any] | None = await connection.scalar(text(_HOSTED), {"name": name})
    if models is None:
        return None
    priced = {model: served.get("price") for model, served in models.items()}
    return {
        model: HostedRate(price["input"], price["output"])
        for model, price in priced.items()
        if price
    }


def _chosen(since: datetime, until: datetime, model: str | None) -> dict[str, object]:
    return {"since": since, "until": until, "model": model}

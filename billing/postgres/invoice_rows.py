"""Which records an invoice has, summed up: the rule of `billing.domain.invoicing.membership` where
the records are. Python sees groups, never records."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Row, bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Text

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.domain.invoicing.lines import LinesDisagree
from billing.domain.invoicing.simulated import SIMULATED, SIMULATED_NOTE
from billing.domain.invoicing.usage_group import LineKind, UsageGroup
from billing.domain.price_book import Price
from billing.postgres.invoice_scope import INSTANTS, Scope, find_late
from billing.postgres.price_tables import price
from billing.postgres.prices import PRICE_COLUMNS, price_from, unix_ms_of

QUARTER = timedelta(minutes=15)
WORK_MEM = "64MB"
"""For sums by quarter of an hour, which need no sorting then; records beyond it lie on disk."""


class Found(NamedTuple):
    """What there is to bill, records that hold it up, and what is to be said of them in print."""

    groups: tuple[UsageGroup, ...]
    blockers: tuple[Blocker, ...]
    notes: tuple[str, ...] = ()


# Neither more nor less than what `rating.cost_pico` counts of a record.
_CACHED = "least(greatest(cached_prompt_tokens, 0), prompt_tokens)"
_REASONING = "least(greatest(reasoning_tokens, 0), output_tokens)"
_COLUMNS = (
    "request_id, admitted_at, model, provider, class AS request_class, price_id, final, cost_pico,"
    f" prompt_tokens - {_CACHED} AS uncached_prompt_tokens, {_CACHED} AS cached_prompt_tokens,"
    f" output_tokens - {_REASONING} AS output_tokens, {_REASONING} AS reasoning_tokens,"
    f" '{SIMULATED}' = ANY (usage_flags) AS simulated"
)
_SUMS = (
    "count(*) AS requests, sum(uncached_prompt_tokens) AS uncached_prompt_tokens,"
    " sum(cached_prompt_tokens) AS cached_prompt_tokens, sum(output_tokens) AS output_tokens,"
    " sum(reasoning_tokens) AS reasoning_tokens, sum(cost_pico) AS cost_pico"
)
_BILLED = (
    "record.tenant_id = :tenant AND record.billable"
    " AND (record.currency = :currency OR record.currency IS NULL)"
)
# One look in an index for each record; only where some record of these may be on an invoice.
_FREE = (
    " AND (SELECT taken.invoice_id FROM invoice_row AS taken"
    " WHERE taken.request_id = record.request_id AND NOT taken.void) IS NULL"
)
_CHOSEN = (
    f"SELECT 'usage' AS kind, CAST(:month AS text) AS month, {_COLUMNS} FROM usage_record AS record"  # noqa: S608 - names of columns and conditions, from above
    f" WHERE {_BILLED} AND record.admitted_at >= :start AND record.admitted_at < :end{{free}}"
    f" UNION ALL SELECT 'adjustment', late.month, {_COLUMNS}"
    " FROM unnest(CAST(:buckets AS timestamptz[]), CAST(:months AS text[])) AS late (bucket, month)"
    " JOIN usage_record AS record ON record.admitted_at >= late.bucket"
    " AND record.admitted_at < late.bucket + interval '15 minutes'"
    f" WHERE {_BILLED} AND record.final AND record.admitted_at < :start{_FREE}"
)
_SUM = f"""
SELECT kind, month, model, provider, request_class, price_id, final, {_SUMS},
    bool_or(simulated) AS simulated
FROM ({{chosen}}) AS chosen GROUP BY 1, 2, 3, 4, 5, 6, 7
"""  # noqa: S608 - as above
_QUARTER = "bucket, kind, month, model, provider, class, price_id"
_COUNTED = (
    "requests, uncached_prompt_tokens, cached_prompt_tokens, output_tokens, reasoning_tokens,"
    " cost_pico"
)
# One statement, so that rows, sums and what holds them up are of one instant.
_TAKE = f"""
WITH chosen AS MATERIALIZED ({{chosen}}),
taken AS (
    INSERT INTO invoice_row (request_id, invoice_id, admitted_at)
    SELECT request_id, :invoice, admitted_at FROM chosen WHERE final AND price_id IS NOT NULL
), summed AS (
    INSERT INTO invoice_quarter (invoice_id, {_QUARTER}, {_COUNTED})
    SELECT :invoice, usage_bucket(admitted_at), kind, month, model, provider, request_class,
        price_id, {_SUMS}
    FROM chosen WHERE final AND price_id IS NOT NULL GROUP BY 2, 3, 4, 5, 6, 7, 8
)
SELECT model, provider, request_class, price_id, final, count(*) AS requests,
    bool_or(simulated) AS simulated
FROM chosen WHERE NOT final OR price_id IS NULL OR simulated GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - as above
_TAKEN = text(
    """
SELECT kind, month, model, provider, class AS request_class, price_id, sum(requests) AS requests,
    sum(uncached_prompt_tokens) AS uncached_prompt_tokens,
    sum(cached_prompt_tokens) AS cached_prompt_tokens, sum(output_tokens) AS output_tokens,
    sum(reasoning_tokens) AS reasoning_tokens, sum(cost_pico) AS cost_pico
FROM invoice_quarter WHERE invoice_id = :invoice GROUP BY 1, 2, 3, 4, 5, 6
"""
)
_HAS_TAKEN = text(
    "SELECT EXISTS (SELECT FROM invoice JOIN invoice_quarter"
    " ON invoice_quarter.invoice_id = invoice.id WHERE tenant_id = :tenant"
    " AND status IN ('issued', 'paid') AND bucket > CAST(:start AS timestamptz) - interval '1 hour'"
    " AND bucket < :end)"
)


async def sum_rows(connection: AsyncConnection, scope: Scope) -> Found:
    """What would be on the invoice now. Nothing is written."""
    rows = await _choose(connection, scope, _SUM)
    billed = [row for row in rows if row.final and row.price_id is not None]
    return Found(await _groups(connection, billed), _blockers(scope, rows), _notes(rows))


async def take_rows(connection: AsyncConnection, scope: Scope, invoice_id: UUID) -> Found:
    """Put on the invoice, a draft, all that belongs on it, within the caller's transaction; from
    then on no other invoice can have it. Where there are blockers it is to be rolled back."""
    await connection.execute(text(f"SET LOCAL work_mem = '{WORK_MEM}'"))
    named = await _choose(connection, scope, _TAKE, invoice=invoice_id)
    taken = (await connection.execute(_TAKEN, {"invoice": invoice_id})).all()
    return Found(await _groups(connection, taken), _blockers(scope, named), _notes(named))


def first_id(at: datetime) -> UUID:
    """The least id of a request that arrives at an instant: none that arrives earlier is as great,
    none that arrives then or later is less."""
    return UUID(int=unix_ms_of(at) << 80)


async def _choose(
    connection: AsyncConnection, scope: Scope, statement: str, **values: object
) -> Sequence[Row[tuple[object, ...]]]:
    late = await find_late(connection, scope)
    period = {"start": scope.period.start, "end": scope.period.end}
    has_taken = await connection.scalar(_HAS_TAKEN, {"tenant": scope.tenant_id, **period})
    chosen = _CHOSEN.format(free=_FREE if has_taken else "")
    query = text(statement.format(chosen=chosen)).bindparams(
        bindparam("buckets", type_=INSTANTS), bindparam("months", type_=ARRAY(Text))
    )
    found = await connection.execute(
        query,
        {
            **scope.of,
            **period,
            **values,
            "month": scope.period.name,
            "buckets": [each.bucket for each in late],
            "months": [each.month for each in late],
        },
    )
    return found.all()


async def _groups(
    connection: AsyncConnection, rows: Sequence[Row[tuple[object, ...]]]
) -> tuple[UsageGroup, ...]:
    prices = await _prices(connection, {row.price_id for row in rows})
    return tuple(
        UsageGroup(
            kind=LineKind(row.kind),
            month=row.month,
            model=row.model,
            provider=row.provider,
            request_class=row.request_class,
            price=_priced(prices, row.price_id),
            requests=int(row.requests),
            uncached_prompt_tokens=int(row.uncached_prompt_tokens),
            cached_prompt_tokens=int(row.cached_prompt_tokens),
            output_tokens=int(row.output_tokens),
            reasoning_tokens=int(row.reasoning_tokens),
            cost_pico=int(row.cost_pico),
        )
        for row in rows
    )


def _priced(prices: dict[int, Price], price_id: int) -> Price:
    found = prices.get(price_id)
    if found is None:
        raise LinesDisagree(
            f"records are rated at price {price_id}, which Postgres has lost: weir restore prices"
        )
    return found


async def _prices(connection: AsyncConnection, ids: set[int]) -> dict[int, Price]:
    rows = await connection.execute(select(*PRICE_COLUMNS).where(price.c.id.in_(ids)))
    return {row.id: price_from(row) for row in rows}


def _blockers(scope: Scope, rows: Sequence[Row[tuple[object, ...]]]) -> tuple[Blocker, ...]:
    """By model, provider and class, unpriced before provisional ones."""
    unpriced: dict[str, int] = {}
    not_final: dict[str, int] = {}
    for row in rows:
        subject = f"{row.model} {row.provider} {row.request_class}"
        if row.price_id is None:
            unpriced[subject] = unpriced.get(subject, 0) + row.requests
        if not row.final:
            not_final[subject] = not_final.get(subject, 0) + row.requests
    return (
        *(
            Blocker(
                obstacle=Obstacle.UNPRICED,
                subject=subject,
                count=count,
                what=f"{count} billable requests of {subject} have no price in {scope.currency}",
            )
            for subject, count in sorted(unpriced.items())
        ),
        *(
            Blocker(
                obstacle=Obstacle.NOT_FINAL,
                subject=subject,
                count=count,
                what=f"{count} requests of {subject} are not final",
            )
            for subject, count in sorted(not_final.items())
        ),
    )


def _notes(rows: Sequence[Row[tuple[object, ...]]]) -> tuple[str, ...]:
    return (SIMULATED_NOTE,) if any(row.simulated for row in rows) else ()

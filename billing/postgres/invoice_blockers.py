"""What Postgres knows of that stands in the way of issuing an invoice."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.postgres.invoice_rows import QUARTER, first_id
from billing.postgres.invoice_scope import Scope
from billing.postgres.rollups import load_differences, load_marks
from billing.postgres.tables import usage_dead_letter

DIFFERENCES_SHOWN = 20
_letters = usage_dead_letter.c

# Roll-ups say all cached and reasoning tokens of an engine, invoices those within the whole.
_COMPARED = text(
    """
WITH billed AS (
    SELECT bucket, model, provider, class, price_id, sum(requests) AS requests,
        sum(uncached_prompt_tokens + cached_prompt_tokens) AS prompt_tokens,
        sum(invoice_quarter.output_tokens + invoice_quarter.reasoning_tokens) AS output_tokens,
        sum(invoice_quarter.cost_pico) AS cost_pico
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_quarter.invoice_id
    WHERE bucket >= :start AND bucket < :end AND tenant_id = :tenant AND currency = :currency
        AND (status IN ('issued', 'paid') OR invoice.id = :invoice)
    GROUP BY 1, 2, 3, 4, 5
), rolled AS (
    SELECT bucket, model, provider, class, price_id, sum(requests) AS requests,
        sum(prompt_tokens) AS prompt_tokens, sum(output_tokens) AS output_tokens,
        sum(cost_pico) AS cost_pico
    FROM usage_rollup
    WHERE bucket >= :start AND bucket < :end AND tenant_id = :tenant AND currency = :currency
        AND billable AND final AND price_id IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
)
SELECT DISTINCT bucket FROM billed FULL JOIN rolled USING (bucket, model, provider, class, price_id)
WHERE (billed.requests, billed.prompt_tokens, billed.output_tokens, billed.cost_pico)
    IS DISTINCT FROM (rolled.requests, rolled.prompt_tokens, rolled.output_tokens, rolled.cost_pico)
ORDER BY bucket
"""
)


async def find_dead_letters(connection: AsyncConnection, end: datetime) -> list[Blocker]:
    """Records that wait for a person, and were admitted before `end` or nobody knows when."""
    rows = await connection.execute(
        select(_letters.gateway_id, _letters.source)
        .where(
            _letters.resolved_at.is_(None),
            or_(_letters.request_id.is_(None), _letters.request_id < first_id(end)),
        )
        .order_by(_letters.id)
    )
    by_gateway: dict[str, int] = {}
    for gateway_id, _ in rows:
        by_gateway[gateway_id] = by_gateway.get(gateway_id, 0) + 1
    return [
        Blocker(
            obstacle=Obstacle.DEAD_LETTERS,
            subject=gateway_id,
            count=count,
            what=f"{count} records of gateway {gateway_id} were refused and wait for a person",
        )
        for gateway_id, count in sorted(by_gateway.items())
    ]


async def find_roll_up_differences(
    connection: AsyncConnection, scope: Scope, invoice_id: UUID
) -> list[Blocker]:
    """Quarters of the period whose roll-up is neither what was taken nor what the records say, and
    that nobody has marked to be made anew.

    A record may come, and be rolled up, after the invoice's were taken: where the two differ, it
    is the records that decide.
    """
    rows = await connection.execute(
        _COMPARED,
        {
            "tenant": scope.tenant_id,
            "currency": scope.currency,
            "start": scope.period.start,
            "end": scope.period.end,
            "invoice": invoice_id,
        },
    )
    known = await load_marks(connection, scope.period.start, scope.period.end)
    found: list[Blocker] = []
    for (bucket,) in rows:
        if (bucket, scope.tenant_id) in known:
            continue
        until = bucket + QUARTER
        marked = await load_marks(connection, bucket, until)
        differing = await load_differences(connection, bucket, until, limit=1_000)
        marked |= await load_marks(connection, bucket, until)
        wrong = [each for each in differing if each.tenant_id == scope.tenant_id]
        if wrong and (bucket, scope.tenant_id) not in marked:
            found.append(
                Blocker(
                    obstacle=Obstacle.ROLLUPS_DIFFER,
                    subject=f"{bucket:%Y-%m-%dT%H:%MZ}",
                    count=len(wrong),
                    what=f"roll-ups of {bucket:%Y-%m-%dT%H:%MZ} are not what records say:"
                    f" {wrong[0].group}",
                )
            )
        if len(found) == DIFFERENCES_SHOWN:
            break
    return found

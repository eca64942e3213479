"""What of a tenant no invoice has, and the next ones will not have by themselves: use in another
currency, and months that nobody has invoiced. By the roll-ups, so what was shipped within the last
minute may be missing."""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.usage_group import LineKind
from billing.postgres.invoice_scope import INSTANTS, Scope, load_invoiced_months
from billing.postgres.invoices import load_document, load_invoice


class Unbilled(NamedTuple):
    """Billable, final requests of a tenant's month and currency that are on no invoice."""

    month: str
    currency: str
    requests: int
    cost_pico: int
    invoice_id: UUID | None
    """Of that month and currency, where there is one that is not void."""
    status: Status | None

    @property
    def billed_by(self) -> str:
        """Which invoice will have them, in words."""
        if self.status is None:
            return f"an invoice of that month in {self.currency}: draft it"
        if self.status is Status.DRAFT:
            return f"the draft of that month in {self.currency}: draft it again"
        return f"an invoice of a later month in {self.currency}, as late records: draft one"


# Of years of days few are on no invoice. Where a whole day is on one, or on none and in one month,
# its quarters are not looked at; else they are, day by day so that Postgres cannot choose to read
# all there are, as are those of days that are to be made anew.
# Requests without a currency hold up an invoice of any, as ones without a price.
_UNBILLED = text(
    """
WITH covered AS (
    SELECT begins, ends FROM unnest(
        CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[])) AS c (begins, ends)
), taken AS (
    SELECT currency, bucket, sum(requests) AS requests, sum(invoice_quarter.cost_pico) AS cost_pico
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_id
    WHERE tenant_id = :tenant AND status IN ('issued', 'paid') GROUP BY 1, 2
), marked AS (
    SELECT start FROM usage_rollup_day_dirty WHERE tenant_id = :tenant
), day AS (
    SELECT start, coalesce(currency, :currency) AS currency, sum(requests) AS requests,
        sum(cost_pico) AS cost_pico
    FROM usage_rollup_day_tenant WHERE tenant_id = :tenant AND billable AND final AND start < :end
        AND start NOT IN (SELECT start FROM marked)
    GROUP BY 1, 2
), taken_day AS (
    SELECT usage_day(bucket) AS start, currency, sum(requests) AS requests,
        sum(cost_pico) AS cost_pico
    FROM taken GROUP BY 1, 2
), untaken AS (
    SELECT start, currency, day.requests, day.cost_pico, taken_day.requests IS NULL
        AND start + interval '24 hours' <= :end
        AND to_char(start AT TIME ZONE :zone, 'YYYY-MM')
            = to_char((start + interval '1425 minutes') AT TIME ZONE :zone, 'YYYY-MM')
        AND NOT EXISTS (SELECT FROM covered
            WHERE begins > start AND begins < start + interval '24 hours'
                OR ends > start AND ends < start + interval '24 hours') AS is_whole
    FROM day LEFT JOIN taken_day USING (start, currency)
    WHERE (day.requests, day.cost_pico) IS DISTINCT FROM (taken_day.requests, taken_day.cost_pico)
), looked_at AS (
    SELECT start FROM marked UNION SELECT start FROM untaken WHERE NOT is_whole
), rolled AS (
    SELECT currency, start AS bucket, requests, cost_pico FROM untaken
    WHERE start NOT IN (SELECT start FROM looked_at)
    UNION ALL SELECT quarter.currency, bucket, quarter.requests, quarter.cost_pico
    FROM looked_at CROSS JOIN LATERAL (
        SELECT coalesce(currency, :currency) AS currency, bucket, sum(requests) AS requests,
            sum(cost_pico) AS cost_pico
        FROM usage_rollup WHERE tenant_id = :tenant AND billable AND final AND bucket < :end
            AND bucket >= start AND bucket < start + interval '24 hours'
        GROUP BY 1, 2
    ) AS quarter
), missing AS (
    SELECT to_char(bucket AT TIME ZONE :zone, 'YYYY-MM') AS month, currency,
        sum(rolled.requests - coalesce(taken.requests, 0)) AS requests,
        sum(rolled.cost_pico - coalesce(taken.cost_pico, 0)) AS cost_pico
    FROM rolled LEFT JOIN taken USING (currency, bucket)
    WHERE rolled.requests > coalesce(taken.requests, 0) AND NOT (currency = :currency
        AND EXISTS (SELECT FROM covered WHERE bucket >= begins AND bucket < ends))
    GROUP BY 1, 2
)
SELECT month, currency, missing.requests, missing.cost_pico, invoice.id, invoice.status
FROM missing LEFT JOIN (
    SELECT id, month, currency, status FROM invoice WHERE tenant_id = :tenant AND status <> 'void'
) AS invoice USING (month, currency)
ORDER BY month, currency
"""
).bindparams(bindparam("starts", type_=INSTANTS), bindparam("ends", type_=INSTANTS))


async def load_unbilled(connection: AsyncConnection, scope: Scope) -> list[Unbilled]:
    """What is on no invoice of the scope's tenant, up to the end of its period, and neither on the
    scope's own nor a late record that its currency's next invoice has; by month and currency."""
    covered = [scope.period, *await load_invoiced_months(connection, scope)]
    rows = await connection.execute(
        _UNBILLED,
        {
            "tenant": scope.tenant_id,
            "currency": scope.currency,
            "zone": scope.period.time_zone,
            "end": scope.period.end,
            "starts": [each.start for each in covered],
            "ends": [each.end for each in covered],
        },
    )
    return [
        Unbilled(
            row.month,
            row.currency,
            int(row.requests),
            int(row.cost_pico),
            row.id,
            None if row.status is None else Status(row.status),
        )
        for row in rows
    ]


async def find_unbilled(connection: AsyncConnection, scope: Scope) -> list[Blocker]:
    """Use of the period in another currency, of which neither an invoice is issued nor a draft has
    all that there is now: nobody may know of it, as after a change of the tenant's currency.

    Not until it is issued: of two currencies of a month one must be the first."""
    found = []
    for each in await load_unbilled(connection, scope):
        if each.month != scope.period.name or each.currency == scope.currency:
            continue
        if each.status is None:
            wanted = f"no invoice: draft that month in {each.currency} too"
        elif each.status is Status.DRAFT and not await _has_all(connection, each):
            wanted = f"no invoice, nor all on the draft: draft that month in {each.currency} again"
        else:
            continue
        found.append(
            Blocker(
                obstacle=Obstacle.UNBILLED,
                subject=each.currency,
                count=each.requests,
                what=f"{each.requests} billable requests of {each.month} are in {each.currency} and"
                f" on {wanted}",
            )
        )
    return found


async def _has_all(connection: AsyncConnection, missing: Unbilled) -> bool:
    """Whether the draft has them. Late records of months before are among its rows, so that these
    alone do not tell."""
    if missing.invoice_id is None:
        return False
    draft = await load_invoice(connection, missing.invoice_id)
    document = await load_document(connection, missing.invoice_id)
    used = sum(line.amount_pico for line in document.lines if line.kind == LineKind.USAGE)
    return draft.row_count >= missing.requests and used >= missing.cost_pico

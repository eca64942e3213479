"""What of a tenant no invoice has, and the next ones will not have by themselves: use in another
currency, and months that nobody has invoiced. By the roll-ups, so what was shipped within the last
minute may be missing."""

from typing import NamedTuple

from sqlalchemy import bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.postgres.invoice_scope import INSTANTS, Scope, load_invoiced_months


class Unbilled(NamedTuple):
    """Billable, final requests of a tenant's month and currency that are on no invoice."""

    month: str
    currency: str
    requests: int
    is_drafted: bool
    """Whether there is an invoice of that month and currency that is not void."""


# Without a currency they hold up an invoice of any, as ones without a price.
_UNBILLED = text(
    """
WITH covered AS (
    SELECT begins, ends FROM unnest(
        CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[])) AS c (begins, ends)
), taken AS (
    SELECT currency, bucket, sum(requests) AS requests
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_id
    WHERE tenant_id = :tenant AND status IN ('issued', 'paid') GROUP BY 1, 2
), rolled AS (
    SELECT coalesce(currency, :currency) AS currency, bucket, sum(requests) AS requests
    FROM usage_rollup WHERE tenant_id = :tenant AND billable AND final AND bucket < :end
    GROUP BY 1, 2
), missing AS (
    SELECT to_char(bucket AT TIME ZONE :zone, 'YYYY-MM') AS month, currency,
        sum(rolled.requests - coalesce(taken.requests, 0)) AS requests
    FROM rolled LEFT JOIN taken USING (currency, bucket)
    WHERE rolled.requests > coalesce(taken.requests, 0) AND NOT (currency = :currency
        AND EXISTS (SELECT FROM covered WHERE bucket >= begins AND bucket < ends))
    GROUP BY 1, 2
)
SELECT month, currency, requests, EXISTS (
    SELECT FROM invoice WHERE tenant_id = :tenant AND invoice.currency = missing.currency
        AND invoice.month = missing.month AND status <> 'void')
FROM missing ORDER BY month, currency
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
    return [Unbilled(month, of, int(count), drafted) for month, of, count, drafted in rows]


async def find_unbilled(connection: AsyncConnection, scope: Scope) -> list[Blocker]:
    """Use of the period in another currency, of which there is no invoice: nobody may know of it,
    as after a change of the tenant's currency."""
    return [
        Blocker(
            obstacle=Obstacle.UNBILLED,
            subject=each.currency,
            count=each.requests,
            what=f"{each.requests} billable requests of {each.month} are in {each.currency} and on"
            f" no invoice: draft that month in {each.currency} too",
        )
        for each in await load_unbilled(connection, scope)
        if each.month == scope.period.name
        and each.currency != scope.currency
        and not each.is_drafted
    ]

"""What an invoice is for, and where late records of earlier months may be.

These are found by sums: a quarter of an hour whose roll-up has not as many billable records, or not
of the same cost, as invoices have taken of it, or that is marked to be made anew.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import DateTime, Text

from billing.domain.invoicing.periods import Month, month

INSTANTS = ARRAY(DateTime(timezone=True))


class Scope(NamedTuple):
    """What an invoice is for."""

    tenant_id: str
    currency: str
    period: Month

    @property
    def of(self) -> dict[str, str]:
        """Tenant and currency, for a statement."""
        return {"tenant": self.tenant_id, "currency": self.currency}


class Late(NamedTuple):
    """A quarter of an hour, before the period, that may have records which no invoice has."""

    bucket: datetime
    month: str


_LATE = text(
    """
WITH months AS (
    SELECT name, begins, ends, rank FROM unnest(
        CAST(:names AS text[]), CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[])
    ) WITH ORDINALITY AS m (name, begins, ends, rank)
), taken AS (
    SELECT bucket, sum(requests) AS requests, sum(invoice_quarter.cost_pico) AS cost_pico
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_quarter.invoice_id
    WHERE tenant_id = :tenant AND currency = :currency AND status IN ('issued', 'paid')
    GROUP BY bucket
), rolled AS (
    SELECT bucket, sum(requests) AS requests, sum(cost_pico) AS cost_pico FROM usage_rollup
    WHERE tenant_id = :tenant AND (currency = :currency OR currency IS NULL)
        AND billable AND final AND bucket >= :first AND bucket < :start
    GROUP BY bucket
), looked_at AS (
    SELECT bucket FROM rolled LEFT JOIN taken USING (bucket)
    WHERE rolled.requests <> coalesce(taken.requests, 0)
        OR rolled.cost_pico IS DISTINCT FROM taken.cost_pico
    UNION SELECT bucket FROM usage_rollup_dirty
    WHERE tenant_id = :tenant AND bucket >= :first AND bucket < :start
)
SELECT bucket, name FROM looked_at CROSS JOIN LATERAL (
    SELECT name FROM months WHERE bucket >= begins AND bucket < ends ORDER BY rank LIMIT 1
) AS of_it ORDER BY bucket
"""
)
_INVOICED = text(
    "SELECT month, time_zone, period_start, period_end FROM invoice WHERE tenant_id = :tenant"
    " AND currency = :currency AND status IN ('issued', 'paid') ORDER BY period_start, month"
)


async def load_invoiced_months(connection: AsyncConnection, scope: Scope) -> list[Month]:
    """Those with an invoice of the scope's tenant and currency that is issued: as the time zone of
    now has them, then as they were printed where that is another range."""
    zone = scope.period.time_zone
    rows = (await connection.execute(_INVOICED, scope.of)).all()
    of_now = [month(row.month, zone) for row in rows]
    printed = [Month(row.month, row.time_zone, row.period_start, row.period_end) for row in rows]
    known = {(each.start, each.end) for each in of_now}
    return [*of_now, *(each for each in printed if (each.start, each.end) not in known)]


async def find_late(connection: AsyncConnection, scope: Scope) -> list[Late]:
    """Quarters before the period, of months that were invoiced, which may have late records: of
    the time zone's of now first, else of those that invoices were printed with."""
    months = await load_invoiced_months(connection, scope)
    earlier = [each for each in months if each.start < scope.period.start]
    if not earlier:
        return []
    found = await connection.execute(
        _LATE.bindparams(
            bindparam("names", type_=ARRAY(Text)),
            bindparam("starts", type_=INSTANTS),
            bindparam("ends", type_=INSTANTS),
        ),
        {
            **scope.of,
            "start": scope.period.start,
            "names": [each.name for each in earlier],
            "starts": [each.start for each in earlier],
            "ends": [each.end for each in earlier],
            "first": min(each.start for each in earlier),
        },
    )
    return [Late(bucket, name) for bucket, name in found]

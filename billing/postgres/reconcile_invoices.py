"""Issued invoices beside the records that they cover, for REC-5."""

from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.invoices import Invoiced, Line, StrayRow, Unsealed
from billing.postgres.invoice_rows import first_id

SHOWN = 1_000
UNBILLED_AFTER_DAYS = 62
"""Then a record's month is over for at least another."""
_LIVE = "status IN ('issued', 'paid')"
_GROUP = "invoice_id, bucket, model, provider, class, price_id"
_COUNTS = {
    "requests": "count(*)",
    "prompt_tokens": "sum(prompt_tokens)",
    "output_tokens": "sum(output_tokens)",
    "cost_pico": "sum(cost_pico)",
}
_BILLED = {
    "requests": "sum(requests)",
    "prompt_tokens": "sum(uncached_prompt_tokens + cached_prompt_tokens)",
    "output_tokens": "sum(invoice_quarter.output_tokens + invoice_quarter.reasoning_tokens)",
    "cost_pico": "sum(invoice_quarter.cost_pico)",
}
_UNITS = {"prompt_tokens": "tokens", "output_tokens": "tokens", "cost_pico": "pico"}


def _sums(of: dict[str, str]) -> str:
    return ", ".join(f"{how} AS {name}" for name, how in of.items())


# By the range of ids, which begin with the time: the index on them knows no tenant, and needs none.
_QUARTERS = text(
    f"""
WITH billed AS (
    SELECT {_GROUP}, {_sums(_BILLED)}
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_id
    WHERE bucket >= :since AND bucket < :until AND {_LIVE} GROUP BY 1, 2, 3, 4, 5, 6
), recorded AS (
    SELECT invoice_id, usage_bucket(record.admitted_at) AS bucket, model, provider, class, price_id,
        {_sums(_COUNTS)}
    FROM invoice_row AS taken JOIN usage_record AS record
        ON record.request_id = taken.request_id AND record.admitted_at = taken.admitted_at
    WHERE NOT void AND taken.request_id >= :first AND taken.request_id < :last
        AND record.admitted_at >= :since AND record.admitted_at < :until
    GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT number, bucket, model, provider, class, price_id,
    {", ".join(f"coalesce(billed.{each}, 0) AS billed_{each}, coalesce(recorded.{each}, 0) AS {each}" for each in _COUNTS)}
FROM billed FULL JOIN recorded USING ({_GROUP}) JOIN invoice ON invoice.id = invoice_id
WHERE {" OR ".join(f"billed.{each} IS DISTINCT FROM recorded.{each}" for each in _COUNTS)}
ORDER BY number, bucket, model, provider, class, price_id LIMIT {SHOWN}
"""  # noqa: E501, S608 - names of columns, from the lists above
)
_STRAYS = text(
    f"""
SELECT number, taken.request_id, CASE
    WHEN record.request_id IS NULL THEN 'its record is gone'
    WHEN NOT record.billable THEN 'its record is not billable'
    WHEN NOT record.final THEN 'its record is not final'
    WHEN record.tenant_id <> invoice.tenant_id THEN 'its record is of tenant ' || record.tenant_id
    ELSE 'its record is in another currency' END
FROM invoice_row AS taken JOIN invoice ON invoice.id = taken.invoice_id
LEFT JOIN usage_record AS record
    ON record.request_id = taken.request_id AND record.admitted_at = taken.admitted_at
WHERE NOT void AND taken.request_id >= :first AND taken.request_id < :last AND (
    record.request_id IS NULL OR NOT record.billable OR NOT record.final
    OR record.tenant_id <> invoice.tenant_id
    OR record.currency IS DISTINCT FROM invoice.currency)
ORDER BY taken.request_id LIMIT {SHOWN}
"""  # noqa: S608 - as above
)
_LOOKED_AT = f"""
SELECT id FROM invoice WHERE {_LIVE} AND (
    (issued_at >= :since AND issued_at < :until) OR EXISTS (
        SELECT FROM invoice_quarter WHERE invoice_id = id AND bucket >= :since AND bucket < :until))
"""  # noqa: S608 - as above
_LINES = text(
    f"""
WITH looked_at AS ({_LOOKED_AT}), summed AS (
    SELECT invoice_id, kind, month, model, provider, class, price_id,
        sum(requests) AS requests, sum(uncached_prompt_tokens) AS input_tokens,
        sum(cached_prompt_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens,
        sum(reasoning_tokens) AS reasoning_tokens, sum(cost_pico) AS cost_pico
    FROM invoice_quarter WHERE invoice_id IN (SELECT id FROM looked_at)
    GROUP BY 1, 2, 3, 4, 5, 6, 7
), counted AS (
    SELECT summed.*, unit, quantity
    FROM summed CROSS JOIN LATERAL (VALUES
        ('input_tokens', input_tokens), ('cached_input_tokens', cached_input_tokens),
        ('output_tokens', output_tokens), ('reasoning_tokens', reasoning_tokens),
        ('requests', requests)) AS each (unit, quantity)
    WHERE quantity > 0
), lines AS (SELECT * FROM invoice_line WHERE invoice_id IN (SELECT id FROM looked_at))
SELECT number, position, coalesce(unit, '?') AS unit, coalesce(lines.quantity, 0) AS billed,
    coalesce(counted.quantity, 0) AS recorded
FROM lines FULL JOIN counted
    USING (invoice_id, kind, month, model, provider, class, price_id, unit)
JOIN invoice ON invoice.id = invoice_id
WHERE lines.quantity IS DISTINCT FROM counted.quantity
    AND NOT (lines.quantity IS NULL AND unit = 'requests')
UNION ALL SELECT number, 0, 'pico', billed.amount, recorded.amount
FROM invoice JOIN looked_at USING (id)
CROSS JOIN LATERAL (SELECT coalesce(sum(amount_pico), 0) FROM invoice_line
    WHERE invoice_id = invoice.id) AS billed (amount)
CROSS JOIN LATERAL (SELECT coalesce(sum(cost_pico), 0) FROM invoice_quarter
    WHERE invoice_id = invoice.id) AS recorded (amount)
WHERE billed.amount <> recorded.amount
UNION ALL SELECT number, 0, currency, total_minor, amount + tax_minor
FROM invoice JOIN looked_at USING (id)
CROSS JOIN LATERAL (SELECT coalesce(sum(amount_minor), 0) FROM invoice_line
    WHERE invoice_id = invoice.id) AS shown (amount)
WHERE total_minor <> amount + tax_minor
ORDER BY 1, 2, 3 LIMIT {SHOWN}
"""  # noqa: S608 - as above
)
_UNSEALED = text(
    f"""
SELECT 'invoice ' || number, 1, 'its document is not the one that was issued'
FROM invoice WHERE id IN ({_LOOKED_AT}) AND encode(sha256(document), 'hex') <> content_hash
UNION ALL SELECT 'credit note ' || number, 1, 'its document is not the one that was issued'
FROM credit_note WHERE issued_at >= :since AND issued_at < :until
    AND encode(sha256(document), 'hex') <> content_hash
UNION ALL SELECT 'numbers ' || series, abs(last - found), found || ' documents have numbers up to '
    || last
FROM invoice_number CROSS JOIN LATERAL (
    SELECT count(*) AS found FROM (SELECT number FROM invoice UNION ALL SELECT number
        FROM credit_note) AS all_of_them WHERE starts_with(number, series)
        AND substr(number, length(series) + 1) ~ '^[0-9]+$') AS counted
WHERE found <> last ORDER BY 1 LIMIT {SHOWN}
"""  # noqa: S608 - as above
)
_TERMS = text(
    f"""
WITH taken AS (
    SELECT tenant_id, currency, bucket, sum(requests) AS requests
    FROM invoice_quarter JOIN invoice ON invoice.id = invoice_id
    WHERE bucket >= :since AND bucket < :until AND {_LIVE} GROUP BY 1, 2, 3
), rolled AS (
    SELECT tenant_id, currency, bucket, sum(requests) AS requests FROM usage_rollup
    WHERE bucket >= :since AND bucket < :until AND billable AND final GROUP BY 1, 2, 3
), missing AS (
    SELECT bucket, rolled.requests - coalesce(taken.requests, 0) AS requests,
        EXISTS (SELECT FROM invoice WHERE {_LIVE} AND invoice.tenant_id = rolled.tenant_id
            AND invoice.currency = rolled.currency AND bucket >= period_start
            AND bucket < period_end) AS is_late,
        bucket < now() - interval '{UNBILLED_AFTER_DAYS} days' AS is_old
    FROM rolled LEFT JOIN taken USING (tenant_id, currency, bucket)
    WHERE rolled.requests > coalesce(taken.requests, 0)
)
SELECT (SELECT count(*) FROM ({_LOOKED_AT}) AS looked_at),
    (SELECT coalesce(sum(requests), 0) FROM taken),
    coalesce(sum(requests) FILTER (WHERE is_late), 0),
    coalesce(sum(requests) FILTER (WHERE NOT is_late AND NOT is_old), 0),
    coalesce(sum(requests) FILTER (WHERE NOT is_late AND is_old), 0)
FROM missing
"""  # noqa: S608 - as above
)


async def load_invoiced(
    connection: AsyncConnection, since: datetime, until: datetime
) -> Invoiced | None:
    """Invoices that are issued and not void, with records of a period (whole quarters of an hour)
    or issued in it; None where there is not one invoice. At most SHOWN of each difference."""
    if not await connection.scalar(text(f"SELECT EXISTS (SELECT FROM invoice WHERE {_LIVE})")):  # noqa: S608 - as above
        return None
    period = {"since": since, "until": until}
    ids = {"first": first_id(since), "last": first_id(until)}
    (counted,) = await connection.execute(_TERMS, period)
    invoices, requests, late, to_bill, unbilled = map(int, counted)
    quarters = (await connection.execute(_QUARTERS, period | ids)).mappings()
    strays = await connection.execute(_STRAYS, ids)
    lines = await connection.execute(_LINES, period)
    unsealed = await connection.execute(_UNSEALED, period)
    return Invoiced(
        invoices,
        requests,
        late,
        to_bill,
        unbilled,
        lines=(
            *(_line(*row) for row in lines),
            *(line for row in quarters for line in _differing(row)),
        ),
        rows=[StrayRow(*row) for row in strays],
        unsealed=[Unsealed(subject, int(size), what) for subject, size, what in unsealed],
    )


def _line(number: str, position: int | None, unit: str, billed: Any, recorded: Any) -> Line:
    where = {None: f"no line of {unit}", 0: "its total"}.get(position, f"line {position} {unit}")
    return Line(number, where, int(billed), int(recorded), unit)


def _differing(row: Any) -> list[Line]:
    """One line for a group of a quarter: by tokens where these differ, else by requests or cost."""
    where = (
        f"{row['bucket']:%Y-%m-%dT%H:%MZ} {row['model']} {row['provider']} {row['class']}"
        f" price {row['price_id']}"
    )
    for name in ("prompt_tokens", "output_tokens", "requests", "cost_pico"):
        billed, recorded = int(row[f"billed_{name}"]), int(row[name])
        if billed != recorded:
            return [Line(row["number"], where, billed, recorded, _UNITS.get(name, name))]
    return []

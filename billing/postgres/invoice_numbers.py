"""Numbers of documents, without gaps: taken in the transaction that issues what carries them."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.numbering import Series, number_of

_NEXT = text(
    "INSERT INTO invoice_number (series, last) VALUES (:series, 1)"
    " ON CONFLICT (series) DO UPDATE SET last = invoice_number.last + 1 RETURNING last"
)


async def take_number(connection: AsyncConnection, series: Series) -> str:
    """The next number of a series. Whoever else wants one waits until this transaction ends, so
    take it last; rolled back, it is the next one's."""
    name = f"{series.prefix}-{series.year:04d}-"
    return number_of(series, await connection.scalar(_NEXT, {"series": name}))

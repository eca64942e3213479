"""Numbers of documents, without gaps: taken in the transaction that issues what carries them."""

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.numbering import PrefixTaken, Series, number_of
from billing.domain.invoicing.party import Seller
from billing.postgres.invoice_tables import number_prefix

_NEXT = text(
    "INSERT INTO invoice_number (series, last) VALUES (:series, 1)"
    " ON CONFLICT (series) DO UPDATE SET last = invoice_number.last + 1 RETURNING last"
)


async def take_number(connection: AsyncConnection, series: Series) -> str:
    """The next number of a series. Whoever else wants one waits until this transaction ends, so
    take it last; rolled back, it is the next one's."""
    name = f"{series.prefix}-{series.year:04d}-"
    return number_of(series, await connection.scalar(_NEXT, {"series": name}))


async def check_prefixes(connection: AsyncConnection, seller: Seller) -> None:
    """Whether the seller's prefixes number documents of their kind only, or none yet. Raises
    PrefixTaken; a trigger refuses what is numbered otherwise."""
    used = {row.prefix: row for row in await connection.execute(select(number_prefix))}
    invoices = used.get(seller.invoice_prefix)
    if invoices is not None and not invoices.invoices:
        raise PrefixTaken("invoice_prefix", seller.invoice_prefix, "credit notes")
    notes = used.get(seller.credit_note_prefix)
    if notes is not None and not notes.credit_notes:
        raise PrefixTaken("credit_note_prefix", seller.credit_note_prefix, "invoices")

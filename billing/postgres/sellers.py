"""Who sells, as Postgres holds it: one row, copied into each document when that is issued."""

import msgspec
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.party import Seller
from billing.postgres.invoice_tables import seller


async def load_seller(connection: AsyncConnection) -> Seller | None:
    """The seller, None where nobody wrote one down yet."""
    details = await connection.scalar(select(seller.c.details))
    return None if details is None else msgspec.convert(details, Seller)


async def save_seller(connection: AsyncConnection, details: Seller, *, by: str) -> Seller | None:
    """Write the seller down, within the caller's transaction; returns the one before. What was
    issued keeps the seller that it has."""
    await connection.scalar(select(seller.c.id).with_for_update())
    before = await load_seller(connection)
    new = insert(seller).values(details=msgspec.to_builtins(details), changed_by=by)
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=[seller.c.id],
            set_={
                "details": new.excluded.details,
                "changed_by": by,
                "changed_at": func.clock_timestamp(),
            },
        )
    )
    return before

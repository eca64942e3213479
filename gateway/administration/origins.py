"""A server is a worker's or a hosted provider's, never both: prompts that must stay here go to any
worker. Called under the directory's lock, so that no two changes pass each other."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.tables import hosted_provider as hosted_table
from gateway.adapters.tables import worker as worker_table
from gateway.domain.origin import name_sharing
from gateway.errors import Unprocessable


async def check_no_provider_at(db: AsyncConnection, url: str) -> None:
    """Raises Unprocessable naming the hosted provider, disabled or not, that is at this server."""
    rows = await db.execute(
        select(hosted_table.c.name, hosted_table.c.url).where(hosted_table.c.removed_at.is_(None))
    )
    name = name_sharing(url, {row.name: row.url for row in rows})
    if name is not None:
        raise _taken(f"the hosted provider {name} is at this server, so no worker can be")


async def check_no_worker_at(db: AsyncConnection, url: str) -> None:
    """Raises Unprocessable naming the worker that is at this server."""
    rows = await db.execute(
        select(worker_table.c.id, worker_table.c.url).where(worker_table.c.removed_at.is_(None))
    )
    name = name_sharing(url, {row.id: row.url for row in rows})
    if name is not None:
        raise _taken(f"the worker {name} is at this server, so no hosted provider can be")


def _taken(why: str) -> Unprocessable:
    return Unprocessable(f"url: {why}", param="url")

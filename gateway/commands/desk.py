"""The desk of invoices, on the stores that a command works on."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from billing.domain.invoicing.issuing import Blocker
from gateway.adapters.births import Births, history_in
from gateway.adapters.invoice_readiness import find_expected
from gateway.adapters.postgres import async_engine
from gateway.adapters.reconciler_live import LiveStores
from gateway.adapters.redis import connect_redis
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection
from gateway.domain.tenant import Tenant, waiting_of
from gateway.settings import Settings

Result = TypeVar("Result")


def at_desk(connection: Connection, work: Callable[[InvoiceDesk], Awaitable[Result]]) -> Result:
    """Do `work` with a desk, and close what it used."""
    return asyncio.run(_at_desk(connection, work))


async def _at_desk(
    connection: Connection, work: Callable[[InvoiceDesk], Awaitable[Result]]
) -> Result:
    engine = async_engine(connection.database_url, pooled=False)
    redis = None
    if connection.redis_url is not None:
        redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)

    async def expected(tenant: Tenant, end: datetime) -> list[Blocker]:
        live = None if redis is None else LiveStores(redis, Births(redis, history_in(engine)))
        # How long a batch request waits is the gateways' own setting.
        wait_ms = max(waiting_of(tenant.limits).max_wait_ms, Settings.queue_batch_wait_ms)
        return await find_expected(engine, live, tenant.id, end, longest_wait_ms=wait_ms)

    try:
        return await work(InvoiceDesk(engine, expected))
    finally:
        await engine.dispose()
        if redis is not None:
            await redis.aclose()

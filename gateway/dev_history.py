"""`weir dev --history`: last month's usage of the seeded tenants, so that there is one to invoice.
It is simulated, and says so wherever it is shown."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.invoicing.periods import Month, month_of_instant, previous
from billing.domain.rating import rated
from billing.postgres.partitions import ensure_partitions
from billing.postgres.prices import load_book, unix_ms_of
from billing.postgres.shipments import store_spare
from billing.postgres.tables import usage_record
from billing.postgres.usage_insert import JournaledRecord
from gateway.adapters.births import Births, history_in
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration
from gateway.dev_history_rows import GATEWAY_ID, Hosted, history
from gateway.dev_hosted import SIMULATED, SIMULATED_PRICE
from gateway.dev_seed import all_of
from gateway.domain.hosted import PROVIDER_PREFIX
from gateway.domain.tenant import DataPolicy, Model, data_policy

REQUESTS = {"acme": 6_000}
REQUESTS_OF_OTHERS = 3_000
_REDIS_TIMEOUT_MS = 2_000


def prices_since_ms(now: datetime) -> int:
    """From when on list prices must hold for it, in Unix milliseconds: a month before last month,
    whatever a tenant's time zone."""
    return unix_ms_of(previous(_last_month(now, "UTC")).start)


async def remember_store(database_url: str, redis_url: str) -> None:
    """Have a new store marked as one that lost nothing, before there is usage: the first gateway
    would find usage and an empty store, take it for one that lost its past, and refuse what has
    limits for a minute. Raises LedgerUnavailable where the store does not answer."""
    engine = async_engine(database_url, pooled=False)
    redis = connect_redis(redis_url, timeout_ms=_REDIS_TIMEOUT_MS)
    try:
        await Births(redis, history_in(engine)).open()
    finally:
        await redis.aclose()
        await engine.dispose()


async def seed_history(
    database_url: str,
    tenants: Iterable[str],
    models: Sequence[Model],
    *,
    hosted: str,
    now: datetime | None = None,
) -> dict[str, int]:
    """Write last month's usage of the tenants of which no request arrived before this month; how
    many requests of each. Once: again it writes nothing, nor does it in a later month.

    The records are a gateway's, but for their place in a journal, and rated at the prices that
    held. Some went to the hosted provider where that is the simulated one, of tenants and keys
    that allow it.
    """
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.begin() as db:
            await ensure_partitions(db)
        written = {}
        for tenant_id in tenants:
            written[tenant_id] = await _seed_tenant(
                engine, tenant_id, models, hosted=hosted, now=now or datetime.now(UTC)
            )
        return written
    finally:
        await engine.dispose()


async def _seed_tenant(
    engine: AsyncEngine, tenant_id: str, models: Sequence[Model], *, hosted: str, now: datetime
) -> int:
    administration = Administration(engine)
    tenant = await administration.get_tenant(tenant_id)
    month = _last_month(now, tenant.time_zone)
    async with engine.connect() as db:
        earlier = usage_record.c.admitted_at < month.end
        if await db.scalar(select(exists().where(usage_record.c.tenant_id == tenant_id, earlier))):
            return 0
        book = await load_book(db)
    keys = await all_of(partial(administration.list_keys, tenant_id))
    requests = REQUESTS.get(tenant_id, REQUESTS_OF_OTHERS) // max(1, len(models))
    allowed = (key.id for key in keys if data_policy(tenant, key) is DataPolicy.HOSTED_ALLOWED)
    elsewhere = Hosted(PROVIDER_PREFIX + SIMULATED, SIMULATED_PRICE, frozenset(allowed))
    rows = [
        JournaledRecord(rated(record, book, tenant.currency), GATEWAY_ID)
        for model in models
        for record in history(
            month,
            model,
            keys,
            requests=requests,
            hosted=elsewhere if hosted == SIMULATED else None,
        )
    ]
    # One transaction: a start that is cut short has written all of a tenant's, or nothing.
    refused = await store_spare(engine, rows)
    return len(rows) - refused


def _last_month(now: datetime, time_zone: str) -> Month:
    return previous(month_of_instant(now, time_zone))

"""`weir limit set --dry-run`: what limits would do, from the stores alone; nothing is saved."""

import asyncio
import time
from collections.abc import Mapping

import click
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.births import Births, history_in
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.administration import Administration
from gateway.administration.pages import LIMIT_MAX
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection
from gateway.commands.output import show_list
from gateway.domain.pools import pools_of
from gateway.serving.limit_effect import limit_effect
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ports import PoolUse
from gateway.serving.queue_view import Json
from gateway.settings import Settings

COLUMNS = ("limit", "model", "now", "then", "used", "over_by", "binds_at_once")


def show_effect(
    connection: Connection,
    tenant_id: str,
    changes: Mapping[str, object],
    *,
    model_id: str | None = None,
) -> None:
    """Print what these changes would do. Raises what the change itself would be refused for."""
    found = asyncio.run(_found(connection, tenant_id, changes, model_id))
    if connection.as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    effects: list[Json] = msgspec.convert(found["limits"], list[dict[str, object]])
    changed = [each for each in effects if each["now"] != each["then"]]
    if not changed:
        click.echo("nothing would change")
        return
    show_list(changed, COLUMNS, as_json=False)
    _show_promised(found)
    click.echo("nothing was saved")


def _show_promised(found: Json) -> None:
    pool: Json | None = msgspec.convert(found["pool"], dict[str, object] | None)
    held = "" if pool is None else f"; the workers hold {pool['sequences']} sequences"
    promised = msgspec.convert(found["promised"], dict[str, dict[str, int]])
    for name, each in promised.items():
        sums = f"{each['now']} now, {each['then']} then, {each['without_limit_then']} without"
        room = held if name == "max_sequences" else ""
        click.echo(f"{name} of all tenants: {sums}{room}")
    for word in msgspec.convert(found["degraded"], list[str]):
        click.echo(f"not known at the moment: {word}", err=True)


async def _found(
    connection: Connection, tenant_id: str, changes: Mapping[str, object], model_id: str | None
) -> Json:
    engine = async_engine(connection.database_url, pooled=False)
    redis = None
    if connection.redis_url is not None:
        redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
    try:
        administration = Administration(engine)
        change = await administration.preview_tenant_changes(tenant_id, changes, model_id=model_id)
        models = (await administration.list_models(LIMIT_MAX)).items
        workers = (await administration.list_workers(LIMIT_MAX)).items
        pools = pools_of((model.id for model in models), workers)
        uses: dict[str, PoolUse | None] = dict.fromkeys(pools)
        if redis is not None:
            uses = await _looked_at(redis, connection.redis_url or "", pools)
        ledger = None if redis is None else _ledger(redis, engine)
        return await limit_effect(change, ledger, uses, now_ms=_now_ms())
    finally:
        await engine.dispose()
        if redis is not None:
            await redis.aclose()


def _ledger(redis: RedisClient, engine: AsyncEngine) -> RedisLedger:
    """It asks since when the store remembers, as gateways do: a loss is not covered up."""
    return RedisLedger(
        redis,
        ttl_ms=Settings.lease_ttl_ms,
        timeout_ms=REDIS_TIMEOUT_MS,
        births=Births(redis, history_in(engine)),
    )


async def _looked_at(redis: RedisClient, url: str, pools: list[str]) -> dict[str, PoolUse | None]:
    queue = RedisPoolQueue(
        redis, url=url, gateway="cli", ttl_ms=Settings.lease_ttl_ms, timeout_ms=REDIS_TIMEOUT_MS
    )
    found: dict[str, PoolUse | None] = {}
    for pool in pools:
        try:
            found[pool] = await queue.observe(pool)
        except LedgerUnavailable:
            found[pool] = None
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

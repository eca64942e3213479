"""What administrators did after the backup goes back with it, and what of that comes again."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from metering_run.arena import ACTOR, MODEL, TENANT, Arena, arena
from restoring import (
    ask,
    back_up,
    fetch,
    lose_postgres,
    put_back,
    said,
    until,
    until_words,
)

from gateway.adapters.postgres import async_engine
from gateway.adapters.price_past import PricePast
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration
from gateway.domain.tenant import RequestClass

pytestmark = pytest.mark.fault
COUNT = "SELECT count(*)::int FROM usage_record"
REVOKED = "SELECT count(*)::int FROM api_key WHERE revoked_at IS NOT NULL"
SUSPENDED = "SELECT count(*)::int FROM tenant WHERE suspended_at IS NOT NULL"
AGAIN = "SELECT action FROM audit_log WHERE actor = 'weir:restore' ORDER BY action"


async def status_of(made: Arena, secret: str) -> int:
    """What a key is answered."""
    headers = {"authorization": f"Bearer {secret}"}
    url = made.gateway_urls[0] + "/v1/models"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status


async def withdraw(made: Arena) -> str:
    """A key is revoked, another tenant suspended; the key's secret."""
    engine = async_engine(made.database_url, pooled=False)
    redis = connect_redis(made.redis_url, timeout_ms=2_000)
    administration = Administration(engine, redis=redis)
    keys = await administration.list_keys(TENANT)
    (key,) = [each for each in keys.items if each.request_class is RequestClass.BATCH]
    await administration.revoke_key(ACTOR, key.id)
    await administration.update_tenant(ACTOR, "other", suspended=True)
    await redis.aclose()
    await engine.dispose()
    return made.secrets[RequestClass.BATCH]


async def until_remembered(made: Arena, newest: dict[str, int]) -> None:
    """Return once Redis knows of these prices, some seconds after they were written."""
    redis = connect_redis(made.redis_url, timeout_ms=2_000)
    deadline = asyncio.get_running_loop().time() + 20
    while (found := await PricePast(redis).newest()) != newest:
        assert asyncio.get_running_loop().time() < deadline, found
        await asyncio.sleep(0.1)
    await redis.aclose()


@pytest.mark.timeout(300)
async def test_changes_since_the_backup(tmp_path: Path) -> None:
    """A key that was revoked is refused all the while and revoked again in Postgres, a tenant
    suspended; prices come back by their numbers, which no other gets, so that the month is billed
    as it was to be; and that changes are lost is said until somebody confirms it."""
    month = datetime.now(UTC).strftime("%Y-%m")
    priced = ("price", "set", MODEL, "--input", "1.00", "--output", "3.00")
    draft = ("invoice", "draft", TENANT, month)
    async with arena(tmp_path, gateways=2, workers=1) as made:
        for command in (
            ("tenant", "create", "other", "--name", "Other"),
            ("seller", "set", "--name", "W", "--address", "A", "--country", "DE"),
            ("tenant", "billing", TENANT, "--legal-name", "A", "--address", "B", "--country", "PL"),
        ):
            assert (await made.command(*command))[0] == 0
        asked = len(await ask(made, 0, 5))
        await until(made, COUNT, asked)
        await back_up(made, tmp_path / "yesterday.dump")
        secret = await withdraw(made)
        assert (await made.command(*priced))[0] == 0
        pinned = "SELECT count(DISTINCT price_id)::int FROM usage_record"
        while (await fetch(made, pinned))[0][0] < 2:
            asked += len(await ask(made, 0, 5))
            await until(made, COUNT, asked)
        _, drafted = await said(made, *draft)
        await until_remembered(made, {"price_entry": 2, "plan_member": 0})
        await lose_postgres(made)
        await put_back(made, tmp_path / "yesterday.dump")

        assert await status_of(made, secret) == 401
        await until(made, REVOKED, 1)
        await until(made, SUSPENDED, 1)
        for gateway in (0, 1):
            await until_words(made, gateway, {"restored"})
        assert [row[0] for row in await fetch(made, AGAIN)] == ["key.revoke", "tenant.update"]
        assert await status_of(made, secret) == 401
        await until(made, COUNT, asked)
        status, lacks = await said(made, "restore", "check")
        assert (status, lacks["journals"]) == (1, [])
        assert lacks["prices"] == {"price_entry": [2], "plan_member": []}
        refused, why = await made.command(*draft)
        assert (refused, len(why.splitlines())) == (2, 1)
        _, other = await said(made, *priced[:3], "--class", "batch", *priced[3:])
        assert other["id"] == 3

        assert await said(made, "restore", "prices") == (0, {"price_entry": [2], "plan_member": []})
        assert await said(made, "restore", "prices") == (0, {"price_entry": [], "plan_member": []})
        _, again = await said(made, *draft)
        assert again["lines"] == drafted["lines"]
        assert (again["row_count"], again["total"]) == (asked, drafted["total"])
        assert (await said(made, "restore", "confirm"))[0] == 0
        for gateway in (0, 1):
            await until_words(made, gateway, set())
        assert (await made.command("restore", "check"))[0] == 0
        assert (await made.command("audit", "verify"))[0] == 0

"""A gateway is killed and its disk is lost with it: what it had said is known all the same."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest
from journal_kills import Acknowledged, journaling
from postgres_proxy import postgres_proxy
from sqlalchemy import text

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.identity import read_identity
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.adapters.second_copy_records import Copies, Copy

pytestmark = pytest.mark.fault


async def copies_at(redis_url: str, gateway_id: str) -> dict[UUID, Copy]:
    """What the store knows of a gateway."""
    store = connect_redis(redis_url, timeout_ms=1_000)
    found = {copy.request_id: copy async for copy in Copies(store).of(gateway_id)}
    await store.aclose()
    return found


async def test_the_loss_of_a_disk_under_load_loses_nothing(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """M22: whatever returned before the kill is a row or a copy, what had ended with its end;
    with Postgres there, and with it away for a while before."""
    async with postgres_proxy(database_url) as proxy:
        for number, (lines, is_away) in enumerate([(300, False), (1500, True), (2000, False)]):
            directory, acknowledged = tmp_path / str(number), Acknowledged()
            with journaling(directory, proxy.url, redis_url) as process:
                acknowledged.read(process, lines // 2)
                identity = read_identity(directory)
                assert identity is not None
                if is_away:
                    await proxy.refuse()
                acknowledged.read(process, lines)
                process.kill()
                acknowledged.read(process, 0)
            shutil.rmtree(directory)
            await proxy.start()
            copies = await copies_at(redis_url, identity.gateway_id)
            engine = async_engine(database_url)
            async with engine.connect() as db:
                rows = set(await db.scalars(text("SELECT request_id FROM usage_record")))
            await engine.dispose()
            ended = {each for each, copy in copies.items() if isinstance(copy.body, UsageRecord)}
            assert acknowledged.ended <= rows | ended
            assert acknowledged.admitted <= rows | copies.keys()
            assert len(copies) > 200 or not is_away

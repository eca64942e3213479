"""The time in a request's id, as Postgres reads it: the same before and after it became cheap."""

import secrets
import uuid
from typing import Any

from sqlalchemy import text

from gateway.adapters.postgres import async_engine
from gateway.domain.request_id import request_id
from gateway.migrate import downgrade

BEFORE = "0006"
QUERY = text("SELECT uuid_v7_time(id) FROM unnest(CAST(:ids AS uuid[])) AS id")


async def test_both_read_the_same_time(database_url: str) -> None:
    """Of ids of every age, of other versions of UUID, and of none."""
    instants_ms = [0, 1, 1_795_970_008_193, 2**40 - 1, *(secrets.randbits(42) for _ in range(300))]
    ids = [request_id(at_ms, secrets.randbits(74)) for at_ms in instants_ms]
    asked: list[Any] = [
        *ids,
        *(uuid.uuid4() for _ in range(20)),
        uuid.uuid1(),
        uuid.UUID(int=0),
        None,
    ]
    engine = async_engine(database_url, pooled=False)

    async def times() -> list[Any]:
        async with engine.connect() as db:
            return list((await db.execute(QUERY, {"ids": asked})).scalars())

    cheap = await times()
    await downgrade(database_url, BEFORE)
    assert cheap == await times()
    assert [round(at.timestamp() * 1000) for at in cheap[: len(ids)]] == instants_ms
    assert cheap[len(ids) :] == [None] * 23
    await engine.dispose()

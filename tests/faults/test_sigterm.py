"""SIGTERM under load: who streams is answered to the end or told that there is none, nothing that
was admitted is lost, and the gateway's status is 0 (issue 7, *Done when* 3)."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import asyncpg
import pytest
from metering_run.arena import Arena, arena
from metering_run.blows import heal
from metering_run.clients import Clients
from metering_run.judge import judge
from metering_run.script import Shot
from metering_run.witness import accounts_of
from servers import eventually

pytestmark = [pytest.mark.fault, pytest.mark.timeout(240)]
ROWS, STREAMS, AT_ONCE = 500, 64, 50
GRACE_S = 12.0
AFTER_GRACE_S = 10.0
"""For what comes after the streams: the journal's end, shipping, farewells."""
SHORT_TOKENS, LONG_TOKENS = 320, 2000
"""One ends within the grace time, the other does not."""


def a_shot(tokens: int, *, stream: bool = True) -> Shot:
    body = {
        "messages": [{"role": "user", "content": "Name three rivers."}],
        "max_tokens": tokens,
        "stream": stream,
        "temperature": 0,
    }
    return Shot(0.0, 0, False, "/v1/chat/completions", body, 1, None)


async def recorded(made: Arena) -> int:
    """Rows in Postgres."""
    connection = await asyncpg.connect(made.database_url)
    try:
        count: int = await connection.fetchval("SELECT count(*) FROM usage_record")
    finally:
        await connection.close()
    return count


async def ask(clients: Clients, shots: list[Shot]) -> None:
    """Together, until the last answer."""
    await clients.run(shots, asyncio.get_running_loop().time())


@pytest.mark.parametrize("has_postgres", [True, False])
async def test_sigterm_under_load_loses_no_row(tmp_path: Path, has_postgres: bool) -> None:
    """M01: 64 streams and 500 rows that are not shipped. Where Postgres comes back within the grace
    time all are in it when the process has ended; else they are when the gateway is back."""
    settings = {
        "WEIR_SHUTDOWN_GRACE_MS": str(round(GRACE_S * 1000)),
        "WEIR_REDIS_TIMEOUT_MS": "5000",  # how soon it decides is not what is asked here
    }
    async with arena(tmp_path, gateways=1, workers=2, **settings) as made:
        clients = Clients(made.gateway_urls, made.secrets)
        (gateway,), (way,) = made.gateways, made.ways["postgres"]
        await way.refuse()
        for _ in range(ROWS // AT_ONCE):
            await ask(clients, [a_shot(1, stream=False)] * AT_ONCE)
        assert Counter(each.status for each in clients.asked) == {200: ROWS}
        lengths = [SHORT_TOKENS, LONG_TOKENS] * (STREAMS // 2)
        streams = asyncio.create_task(ask(clients, [a_shot(tokens) for tokens in lengths]))
        await eventually(lambda: clients.answering == STREAMS, within_s=20, what="64 streams")
        assert await recorded(made) == 0
        asked_s = time.monotonic()
        stopping = asyncio.create_task(gateway.stop())
        if has_postgres:
            await heal(way)
        assert await stopping == 0
        assert time.monotonic() - asked_s < GRACE_S + AFTER_GRACE_S
        await streams
        ends = Counter(each.error or "whole" for each in clients.asked[ROWS:])
        assert ends == {"whole": STREAMS // 2, "error event": STREAMS // 2}
        if has_postgres:
            assert await recorded(made) == ROWS + STREAMS
        else:
            assert await recorded(made) == 0
            await heal(way)
            await gateway.start()
            assert await gateway.stop() == 0
        accounts = await accounts_of(made, clients.asked, [])
    verdict = judge(accounts)
    assert [str(each) for each in verdict.findings] == []
    assert len(accounts.rows) == ROWS + STREAMS
    outcomes = Counter(row.outcome for row in accounts.rows)
    assert outcomes == {"completed": ROWS + STREAMS // 2, "gateway_lost": STREAMS // 2}
    assert {row.source for row in accounts.rows} == {"engine_final"}

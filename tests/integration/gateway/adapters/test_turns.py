"""Turns in a real store: one holder at a time, until it gives the turn back or is gone."""

import asyncio
import time

import pytest

from gateway.adapters import turns as turns_module
from gateway.adapters.redis import connect_redis
from gateway.adapters.turns import RedisTurns
from gateway.serving.ports import LedgerUnavailable


async def test_one_holder_at_a_time(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken, kept, given back by its holder alone; of a holder that is gone it lapses."""
    store = connect_redis(redis_url, timeout_ms=1_000)
    turns = RedisTurns(store)
    assert await turns.claim("acme", "2026-11", "a")
    assert await turns.claim("acme", "2026-11", "a")
    assert not await turns.claim("acme", "2026-11", "b")
    assert await turns.claim("acme", "2026-12", "b")
    assert await turns.claim("globex", "2026-11", "b")
    await turns.release("acme", "2026-11", "b")
    assert not await turns.claim("acme", "2026-11", "b")
    await turns.release("acme", "2026-11", "a")
    monkeypatch.setattr(turns_module, "TURN_MS", 50)
    assert await turns.claim("acme", "2026-11", "b")
    deadline_s = time.monotonic() + 5
    while not await turns.claim("acme", "2026-11", "a"):
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.01)
    await store.aclose()


async def test_a_store_that_is_away(free_port: int) -> None:
    """It is said so."""
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    turns = RedisTurns(away)
    with pytest.raises(LedgerUnavailable):
        await turns.claim("acme", "2026-11", "a")
    with pytest.raises(LedgerUnavailable):
        await turns.release("acme", "2026-11", "a")
    await away.aclose()

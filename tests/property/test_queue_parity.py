"""The Lua scripts of a pool's queue execute the Python specification: the same steps, the same
answers and messages."""

import random
from collections.abc import Callable, Iterator

import pytest
import redis.asyncio
from queue_crowd import (
    run_crowded,
    run_kept_for_the_floor,
    run_lapsed,
    run_last_looked_at,
    run_no_worker,
    run_not_lifted,
    run_parked,
    run_promoted,
    run_told_to_look,
)
from queue_parity import QueueParity, parity_with, run_parity
from queue_specified import OneServersEar

from gateway.adapters.redis import connect_redis


@pytest.fixture
def machine(redis_url: str) -> Iterator[type[QueueParity]]:
    """On the session's server."""

    async def flush_scripts() -> None:
        async with redis.asyncio.Redis.from_url(redis_url) as plain:
            await plain.script_flush()

    with parity_with(
        redis_url,
        lambda: connect_redis(redis_url, timeout_ms=5_000),
        lambda gateways: OneServersEar.at(redis_url, gateways),
        flush_scripts,
    ) as made:
        yield made


@pytest.mark.timeout(300)
def test_lua_executes_the_specification_of_the_queue(machine: type[QueueParity]) -> None:
    """Any sequence of steps of two gateways, clock jumps, losses and script flushes."""
    run_parity(machine, examples=120)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_lua_executes_it_in_a_crowd(machine: type[QueueParity], seed: int) -> None:
    """Where a step's bounds are reached: tickets and tenants looked at, granted, let go."""
    run_crowded(machine(), random.Random(seed), rounds=2)  # noqa: S311 - a test


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lua_keeps_workers_for_the_floor(machine: type[QueueParity], seed: int) -> None:
    """For the same requests, and lets the same go."""
    run_kept_for_the_floor(machine(), random.Random(seed))  # noqa: S311 - a test


def test_lua_looks_at_as_many_as_the_specification(machine: type[QueueParity]) -> None:
    """To the last one, and no further."""
    run_last_looked_at(machine())


@pytest.mark.parametrize(
    "run", [run_not_lifted, run_lapsed, run_promoted, run_no_worker, run_parked, run_told_to_look]
)
def test_lua_has_the_rules_that_show_seldom(
    machine: type[QueueParity], run: Callable[[QueueParity], None]
) -> None:
    """Nobody is lifted whose place was taken back; what lapsed was served; the promoted stay;
    nobody is taken in where no worker is well, nor parked where too many wait; who is parked hears
    of what ends elsewhere."""
    run(machine())

"""What the preflight says of a Redis, by what it says of itself."""

from collections.abc import AsyncIterator

import pytest
from scripted_redis import ScriptedRedis, bulk, scripted_redis

from gateway.adapters.redis import connect_redis
from gateway.preflight import Finding, Status
from gateway.preflight_redis import check_redis

SAYS = {
    "redis_version": "7.2.4",
    "server_name": "valkey",
    "valkey_version": "9.1.2",
    "role": "master",
    "cluster_enabled": "0",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedRedis]:
    async with scripted_redis() as started:
        started.answers[b"TIME"] = lambda _: b"*2\r\n$1\r\n0\r\n$1\r\n0\r\n"
        yield started


async def found(server: ScriptedRedis, **says: str) -> dict[str, Finding]:
    info = "# Server\r\n" + "".join(f"{k}:{v}\r\n" for k, v in {**SAYS, **says}.items())
    server.answers[b"INFO"] = lambda _: bulk(info.encode())
    redis = connect_redis(server.url(), timeout_ms=1000)
    findings = await check_redis(redis)
    await redis.aclose()
    return {finding.name: finding for finding in findings}


async def test_what_kind_it_is(server: ScriptedRedis) -> None:
    """The kind, the server's name and its own version."""
    findings = await found(server)
    assert findings["redis"].detail == "single server, valkey, version 9.1.2"
    assert findings["redis eviction"].status is Status.OK
    assert findings["redis persistence"].status is Status.OK
    assert findings["clock"].status is Status.FAIL


@pytest.mark.parametrize(
    ("says", "detail"),
    [
        ({"role": "slave"}, "a replica"),
        ({"cluster_enabled": "1"}, "redis+cluster://"),
        ({"redis_version": "6.2.1"}, "7 is needed"),
        ({"redis_version": "unknown"}, "7 is needed"),
    ],
)
async def test_what_cannot_be_used(
    server: ScriptedRedis, says: dict[str, str], detail: str
) -> None:
    """One line that says what is wrong, and nothing is looked at further."""
    findings = await found(server, **says)
    assert list(findings) == ["redis"]
    assert findings["redis"].status is Status.FAIL
    assert detail in findings["redis"].detail


@pytest.mark.parametrize("command", [b"EVAL", b"EVALSHA", b"SCRIPT"])
async def test_c14_scripts_that_are_forbidden(server: ScriptedRedis, command: bytes) -> None:
    """C14: one of the three is enough."""
    server.answers[command] = lambda _: b"-NOPERM no permissions to run it\r\n"
    findings = await found(server)
    assert findings["redis scripts"].status is Status.FAIL
    assert "NoPermissionError" in findings["redis scripts"].detail


async def test_scripts_that_cannot_write(server: ScriptedRedis) -> None:
    """A full memory lets a script run that writes nothing."""

    def full(command: list[bytes]) -> bytes:
        return bulk(b"1") if command[2] == b"0" else b"-OOM command not allowed\r\n"

    server.answers[b"EVALSHA"] = full
    findings = await found(server)
    assert findings["redis scripts"].status is Status.FAIL
    assert "not one that writes" in findings["redis scripts"].detail


async def test_what_works_and_can_cost_something(server: ScriptedRedis) -> None:
    """Eviction and a missing append-only file are warnings."""
    findings = await found(server, maxmemory_policy="allkeys-lru", aof_enabled="0")
    assert findings["redis eviction"].status is Status.WARN
    assert findings["redis persistence"].status is Status.WARN

"""C14: a Redis that runs no scripts is never a reason to decide otherwise."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError
from servers import free_port

from gateway.adapters.redis import connect_redis, require_scripts
from gateway.errors import StoreUnavailable

STARTS_WITHIN_S = 30.0


@pytest.fixture
def restricted_url(redis_url: str) -> Iterator[str]:
    """The test's Redis for a user that may do everything but run scripts."""
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command(
            "ACL", "SETUSER", "plain", "on", ">plain-secret", "~*", "+@all", "-@scripting"
        )
        place = redis_url.rpartition("@")[2]
        try:
            yield f"redis://plain:plain-secret@{place}"
        finally:
            client.execute_command("ACL", "DELUSER", "plain")


def test_c14_a_gateway_does_not_start(
    restricted_url: str, database_url: str, tmp_path: Path
) -> None:
    """C14: `weir serve` refuses in one line that says why, and shows no password."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "serve"],
        env={
            **os.environ,
            "WEIR_REDIS_URL": restricted_url,
            "WEIR_DATABASE_URL": database_url,
            "WEIR_JOURNAL_DIR": str(tmp_path / "journal"),
            "WEIR_LISTEN": f"127.0.0.1:{free_port()}",
        },
        capture_output=True,
        text=True,
        timeout=STARTS_WITHIN_S,
        check=False,
    )
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("weir: ")]
    assert "Redis does not run scripts" in line
    assert "plain-secret" not in done.stdout + done.stderr


async def test_c14_scripts_forbidden_later_are_no_answer(redis_url: str) -> None:
    """C14, R11: a Redis that still answers PING but runs no script any more is as good as away:
    a script fails with what the server says, and so does the ping that readiness goes by."""
    client = connect_redis(redis_url, timeout_ms=1000)
    script = client.register_script("return 1")
    assert await script(["k"], []) == 1
    await client.ping()
    with redis.Redis.from_url(redis_url) as administrator:
        administrator.execute_command("ACL", "SETUSER", "default", "-evalsha")
        try:
            with pytest.raises(NoPermissionError):
                await script(["k"], [])
            with pytest.raises(NoPermissionError):
                await client.ping()
        finally:
            administrator.execute_command("ACL", "SETUSER", "default", "+evalsha")
    await client.ping()
    await client.aclose()


async def test_lost_scripts_are_sent_again(redis_url: str) -> None:
    """C14: SCRIPT FLUSH costs one more round trip, not a decision."""
    client = connect_redis(redis_url, timeout_ms=1000)
    script = client.register_script("return ARGV[1]")
    for turn in range(3):
        with redis.Redis.from_url(redis_url) as administrator:
            administrator.script_flush()
        assert await script(["k"], [turn]) == b"%d" % turn
    await client.aclose()


async def test_only_an_answer_keeps_a_gateway_from_starting() -> None:
    """A Redis that is away may come back: that is readiness's to say, and found out in time."""
    client = connect_redis(f"redis://127.0.0.1:{free_port()}", timeout_ms=100)
    began = time.monotonic()
    await require_scripts(client)
    assert time.monotonic() - began < 0.3
    await client.aclose()


async def test_a_proxy_that_knows_no_scripts_is_refused(redis_url: str) -> None:
    """C14: renamed or unknown commands count as forbidden."""
    client = connect_redis(redis_url, timeout_ms=1000)

    async def unknown() -> None:
        raise redis.ResponseError("ERR unknown command 'EVAL'")

    client.check_scripts = unknown  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable, match="EVALSHA"):
        await require_scripts(client)
    await client.aclose()

"""`weir` says which gateways have not confirmed a change."""

import asyncio

import pytest
from weir_command import Weir

from gateway.adapters.confirmations import Confirmations
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import connect_redis
from gateway.domain.confirmation import Applied


class _Born:
    async def born_ms(self, tenant_id: str) -> int:
        return 0


async def _tell(redis_url: str) -> None:
    redis = connect_redis(redis_url, timeout_ms=2_000)
    gateways = Gateways(redis, _Born())
    for name, seen in (("gw-a", 2**62), ("gw-b", 0)):
        await gateways.tell(name, 0)
        await Confirmations(redis, gateways).tell(name, Applied(seen))
    await redis.aclose()


@pytest.fixture
def key_id(weir: Weir) -> str:
    """A key of `acme`."""
    weir.ok("tenant", "create", "acme")
    made: str = weir.json("key", "create", "acme", "--name", "k")["id"]
    return made


def test_those_that_have_not_confirmed_are_named(
    weir: Weir, key_id: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is made, and the status is 0; limits as JSON are what `limit show` prints."""
    asyncio.run(_tell(redis_url))
    monkeypatch.setenv("WEIR_REDIS_URL", redis_url)
    rotated = weir.json("key", "rotate", key_id)
    created = weir.json("key", "create", "acme", "--name", "k")
    revoked = weir.json("key", "revoke", key_id)
    for shown in (rotated, created, revoked):
        assert (shown["unconfirmed"], shown["unknown"]) == (["gw-b"], None)
    assert weir.json("tenant", "suspend", "acme")["unconfirmed"] == ["gw-b"]
    assert weir.ok("limit", "set", "acme", "--rpm", "7").endswith("unconfirmed: gw-b\n")
    shown = weir.json("limit", "set", "acme", "--rpm", "8")
    assert weir.json("limit", "show", "acme") == shown


def test_without_a_redis_it_is_not_known(weir: Weir, key_id: str) -> None:
    """Nobody is claimed to have confirmed."""
    revoked = weir.json("key", "revoke", key_id)
    assert (revoked["unconfirmed"], revoked["unknown"]) == (None, "no_store")
    told = weir.ok("limit", "set", "acme", "--rpm", "7")
    assert told.endswith("unconfirmed: not known, no_store\n")

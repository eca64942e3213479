"""`weir limit set --dry-run`: what it would do, and that it does nothing."""

import asyncio

import pytest
from tenant_examples import a_key, a_tenant
from weir_command import Weir

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain.admission import Demand
from gateway.domain.scopes import scopes_of


@pytest.fixture
def acme(weir: Weir) -> Weir:
    """With a tenant that may run 20 sequences, and another without a limit."""
    weir.ok("tenant", "create", "acme", "--name", "Acme")
    weir.ok("tenant", "create", "big", "--name", "Big")
    weir.run("limit", "set", "acme", "--max-sequences", "20")
    return weir


async def run_twelve(redis_url: str) -> None:
    """Twelve sequences of `acme` run."""
    redis = connect_redis(redis_url, timeout_ms=1_000)
    ledger = RedisLedger(redis, ttl_ms=60_000, timeout_ms=1_000)
    demand = Demand("r1", 12, 3_000, 3_000)
    await ledger.acquire("acme", "key-1", "m", demand, scopes_of(a_tenant(), a_key(), "m"))
    await redis.aclose()


def test_it_says_what_would_bind(
    acme: Weir, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 running against 8; nothing is saved."""
    monkeypatch.setenv("WEIR_REDIS_URL", redis_url)
    asyncio.run(run_twelve(redis_url))
    told = acme.ok("limit", "set", "acme", "--max-sequences", "8", "--dry-run").splitlines()
    assert told[1].split() == ["max_sequences", "-", "20", "8", "12", "4", "yes"]
    assert told[2].startswith("max_sequences of all tenants: 20 now, 8 then, 1 without")
    assert told[-1] == "nothing was saved"
    assert acme.json("limit", "show", "acme")["max_sequences"] == 20
    found = acme.json("limit", "set", "acme", "--tpm", "5", "--dry-run")
    (tpm,) = (each for each in found["limits"] if each["limit"] == "tpm")
    assert (tpm["then"], tpm["used"], tpm["binds_at_once"]) == (5, 3_000, True)


def test_without_a_redis_use_is_not_known(acme: Weir) -> None:
    """It is said so, and what is promised all the same."""
    status, out, err = acme.run("limit", "set", "acme", "--max-sequences", "8", "--dry-run")
    assert (status, err) == (0, "not known at the moment: redis\n")
    assert "20 now, 8 then" in out
    assert acme.json("limit", "set", "acme", "--weight", "1", "--dry-run")["degraded"] == ["redis"]


def test_what_would_be_refused_is_refused(acme: Weir) -> None:
    """And a dry run is of one tenant's limits."""
    assert "max_sequences" in acme.refused(
        "limit", "set", "acme", "--max-sequences", "-1", "--dry-run"
    )
    acme.refused("limit", "set", "acme", "big", "--tpm", "5", "--dry-run")
    acme.refused("limit", "set", "--key", "key-1", "--tpm", "5", "--dry-run")

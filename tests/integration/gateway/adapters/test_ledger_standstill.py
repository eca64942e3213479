"""A scope that was charged while the clock was a little behind its tenant's newest second."""

import pytest
from ledger_draws import scope_names

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain import admission
from gateway.domain.admission import Demand, Granted, Refused, TenantState
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

TTL_MS = 600_000


class Side:
    """The specification and Redis, told the same."""

    def __init__(self, ledger: RedisLedger, now_ms: list[int]) -> None:
        self.state = TenantState()
        self.ledger = ledger
        self.now_ms = now_ms

    async def acquire(self, request_id: str, key: str, tokens: int) -> Granted | Refused:
        """Granted, and with the same use in all scopes."""
        demand = Demand(request_id, 1, tokens, tokens)
        limits = tuple(ScopeLimits(name, 1, None, None, None) for name in scope_names(key, "m"))
        now_ms = self.now_ms[0]
        told = admission.acquire(self.state, demand, limits, now_ms=now_ms, ttl_ms=TTL_MS)
        found = await self.ledger.acquire("t", key, "m", demand, limits)
        assert found == told
        assert isinstance(found, Granted)
        return found


@pytest.mark.parametrize("back_ms", [1_000, 3_000, 5_000])
@pytest.mark.parametrize("settles", [False, True])
async def test_what_has_aged_is_dropped_when_the_clock_is_there_again(
    redis_url: str, back_ms: int, settles: bool
) -> None:
    """Another key's charges kept the tenant's newest second ahead: what this one charges meanwhile
    goes there, and when that second comes its old cells are gone as anybody's."""
    client = connect_redis(redis_url, timeout_ms=5_000)
    now_ms = [1_800_000_000_000]
    ledger = RedisLedger(client, ttl_ms=TTL_MS, timeout_ms=5_000, clock_ms=lambda: now_ms[0])
    side = Side(ledger, now_ms)
    await side.acquire("old", "k2", 500)
    now_ms[0] += 62_000
    await side.acquire("ahead", "k1", 1)
    now_ms[0] -= back_ms
    behind = await side.acquire("behind", "k2", 1)
    now_ms[0] += back_ms
    if settles:
        assert isinstance(behind, Granted)
        names = tuple(scope_names("k2", "m"))
        lease = HeldLease("behind", "t", "k2", "m", 1, 1, behind.second, names)
        await ledger.settle(lease, actual_tokens=1, ran=True)
        admission.settle(side.state, "behind", actual_tokens=1, ran=True, now_ms=now_ms[0])
    for second in range(3):
        use = (await side.acquire(f"now {second}", "k2", 1)).uses[1]
        assert use.tokens == 2 + second
        now_ms[0] += 1_000
    await client.aclose()

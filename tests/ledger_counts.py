"""How often a decision of the ledger reads the book: once where it goes the cheap way."""

from collections.abc import Sequence

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient
from gateway.domain.admission import Demand, Granted, Refused, Settled
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTL_MS = 10_000
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
USUAL, OTHER = 1, 2
"""How often the book is read: a script that leaves the usual way reads it again."""


class Counted:
    """A ledger whose every call says how often it read the book."""

    def __init__(self, client: RedisClient, limits: Sequence[ScopeLimits]) -> None:
        self.limits = limits
        self.now_ms = START_MS
        self.client = client
        self.ledger = RedisLedger(
            client, ttl_ms=TTL_MS, timeout_ms=5_000, clock_ms=lambda: self.now_ms
        )

    async def acquire(self, rid: str, tokens: int = 10) -> tuple[Granted | Refused, int]:
        before = await self._reads()
        reply = await self.ledger.acquire(
            "acme", "k", "m", Demand(rid, 1, tokens, tokens), self.limits
        )
        assert isinstance(reply, Granted | Refused)
        return reply, await self._reads() - before

    async def settle(
        self, rid: str, second: int, tokens: int, *, ran: bool = True, reserved: int = 10
    ) -> int:
        lease = HeldLease(rid, "acme", "k", "m", 1, reserved, second, NAMES)
        before = await self._reads()
        assert await self.ledger.settle(lease, actual_tokens=tokens, ran=ran) is Settled.LIVE
        return await self._reads() - before

    async def _reads(self) -> int:
        (stats,) = await self.client.info("commandstats")
        line = stats.get("cmdstat_hmget", "calls=0")
        return int(line.split(",")[0].removeprefix("calls="))

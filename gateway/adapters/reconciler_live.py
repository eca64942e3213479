"""What is live, as the stores of leases, copies and heartbeats say it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from redis.exceptions import RedisError

from billing.domain.reconciliation.requests import Held
from billing.domain.usage_record import UsageRecord
from gateway.adapters.active_tenants import ActiveTenants
from gateway.adapters.births import Births
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import RedisClient
from gateway.adapters.second_copy_records import Copies
from gateway.domain.presence import GONE_MS, Standing
from gateway.serving.ports import LedgerUnavailable

LIVE_LAST = "999999999999999"
"""Scores of live leases end here (`lua/head.lua`)."""
PRESENT_MS = 3_000
"""A gateway that was seen in so short a time renews its leases."""
AGAIN_S = 3.0
"""What is no longer strange after so long was only on its way: leases are renewed every 2.5 s."""


@dataclass(frozen=True)
class Look:
    """Redis at one moment."""

    standings: Mapping[str, Standing]
    now_ms: int
    leases: Mapping[UUID, str] = field(default_factory=dict)
    """Live ones, each with its tenant."""
    open_copies: Mapping[UUID, str] = field(default_factory=dict)
    """Requests of gateways that are there whose copy is an admission, each with the gateway."""
    ended_copies: Mapping[UUID, UsageRecord] = field(default_factory=dict)

    def is_gone(self, gateway_id: str) -> bool:
        """Whether it is not on the list, or was not seen for a minute."""
        standing = self.standings.get(gateway_id)
        return standing is None or standing.seen_ms <= self.now_ms - GONE_MS


@dataclass(frozen=True)
class Live:
    """What was so in two looks."""

    last: Look
    leases: Sequence[Held]
    open_copies: Mapping[UUID, str]
    uncopied: int


class LiveStores:
    """Redis as reconciliation reads it. Every method raises LedgerUnavailable."""

    def __init__(self, redis: RedisClient, births: Births, *, again_s: float = AGAIN_S) -> None:
        self._redis = redis
        self._tenants = ActiveTenants(redis)
        self._gateways = Gateways(redis, births)
        self._copies = Copies(redis)
        self._again_s = again_s

    async def heartbeats(self) -> Look:
        """Who is there, and how far each journal is."""
        standings = await self._gateways.standings()
        try:
            seconds, micros = await self._redis.time()
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error
        return Look(standings, seconds * 1000 + micros // 1000)

    async def live(self) -> Live:
        """What is live; where anything looks strange it is looked at again after a while, and only
        what is so both times counts."""
        first = await self._look()
        strange = (first.leases.keys() ^ first.open_copies.keys()) - first.ended_copies.keys()
        if strange:
            await asyncio.sleep(self._again_s)
        last = await self._look() if strange else first
        known = last.ended_copies.keys()
        leases = [
            Held(request_id, tenant_id)
            for request_id, tenant_id in sorted(last.leases.items())
            if request_id in first.leases and request_id not in known
        ]
        open_copies = {
            request_id: gateway_id
            for request_id, gateway_id in last.open_copies.items()
            if request_id in first.open_copies
        }
        told = sum(
            standing.journal.open_count
            for name, standing in last.standings.items()
            if standing.journal is not None and not last.is_gone(name)
        )
        return Live(last, leases, open_copies, max(0, told - len(last.open_copies)))

    async def _look(self) -> Look:
        look = await self.heartbeats()
        open_copies: dict[UUID, str] = {}
        ended: dict[UUID, UsageRecord] = {}
        for name, standing in look.standings.items():
            is_present = standing.seen_ms > look.now_ms - PRESENT_MS
            async for copy in self._copies.of(name):
                if isinstance(copy.body, UsageRecord):
                    ended[copy.request_id] = copy.body
                elif is_present:
                    open_copies[copy.request_id] = name
        return Look(look.standings, look.now_ms, await self._leases(), open_copies, ended)

    async def _leases(self) -> dict[UUID, str]:
        found: dict[UUID, str] = {}
        cursor, begun = 0, False
        while cursor or not begun:
            begun = True
            cursor, tenants = await self._tenants.active_page(cursor)
            for tenant_id in tenants:
                for name in await self._due(tenant_id):
                    found[UUID(name.decode())] = tenant_id
        return found

    async def _due(self, tenant_id: str) -> list[bytes]:
        try:
            members = await self._redis.zrangebyscore(
                f"weir:{{{tenant_id}}}:due", "-inf", LIVE_LAST
            )
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error
        return [name for name in members if not name.startswith(b"@")]

"""What is live, as the stores of leases, copies and heartbeats say it."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from redis.exceptions import RedisError
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.requests import Held
from billing.domain.usage_record import UsageRecord
from gateway.adapters.active_tenants import ActiveTenants
from gateway.adapters.births import Births
from gateway.adapters.number_past import (
    LostNumbers,
    NumberPast,
    Owner,
    load_numbers,
    lost_numbers,
)
from gateway.adapters.postgres_past import PostgresPast, find_restored
from gateway.adapters.presence import PERIOD_S, Gateways
from gateway.adapters.redis import RedisClient
from gateway.adapters.second_copy_records import Copies
from gateway.domain.completeness import completeness
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
    admitted_copies: Mapping[UUID, str] = field(default_factory=dict)
    """Requests of any gateway whose copy is an admission, each with the gateway."""
    ended_copies: frozenset[UUID] = frozenset()

    @property
    def copies(self) -> frozenset[UUID]:
        """Requests that have a copy, whoever admitted them and whether he is there or not."""
        return self.ended_copies | self.admitted_copies.keys()

    @property
    def open_copies(self) -> dict[UUID, str]:
        """Admissions of gateways that are there: each of them keeps a lease of it alive."""
        return {
            request_id: name
            for request_id, name in self.admitted_copies.items()
            if self.standings[name].seen_ms > self.now_ms - PRESENT_MS
        }

    def is_gone(self, gateway_id: str, *, after_ms: int = GONE_MS) -> bool:
        """Whether it is not on the list, or was not seen for so long."""
        standing = self.standings.get(gateway_id)
        return standing is None or standing.seen_ms <= self.now_ms - after_ms


@dataclass(frozen=True)
class Live:
    """What was so in two looks."""

    leases: Sequence[Held]
    """Those of requests that are open, in one look or the other, and those that no gateway has ever
    admitted: a copy of any gateway, there or not, says whose a lease is."""
    open_copies: Mapping[UUID, str]
    uncopied: int
    unsettled: frozenset[UUID]
    """Requests that had a copy in one look or the other: their end may not be in Postgres."""


class LiveStores:
    """Redis as reconciliation reads it. Every method raises LedgerUnavailable."""

    def __init__(self, redis: RedisClient, births: Births, *, again_s: float = AGAIN_S) -> None:
        self._redis = redis
        self._tenants = ActiveTenants(redis)
        self._gateways = Gateways(redis, births)
        self._copies = Copies(redis)
        self._past = PostgresPast(redis)
        self._numbers = NumberPast(redis)
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
        is_strange = first.leases.keys() - first.copies or first.open_copies.keys() - first.leases
        if is_strange:
            await asyncio.sleep(self._again_s)
        last = await self._look() if is_strange else first
        unsettled = first.copies | last.copies
        first_open = first.open_copies
        open_copies = {
            request_id: gateway_id
            for request_id, gateway_id in last.open_copies.items()
            if request_id in first_open
        }
        explained = unsettled - open_copies.keys()
        held = {**first.leases, **last.leases}
        both = first.leases.keys() & last.leases.keys() - explained
        leases = [
            Held(request_id, held[request_id])
            for request_id in sorted(held.keys() & (both | open_copies.keys()))
        ]
        there = {name for name in last.standings if not last.is_gone(name)}
        told = sum(
            standing.journal.open_count
            for name, standing in last.standings.items()
            if standing.journal is not None and name in there
        )
        copied = sum(name in there for name in last.admitted_copies.values())
        return Live(leases, open_copies, max(0, told - copied), unsettled)

    async def open_of(self, tenant_id: str, before_ms: int) -> frozenset[UUID]:
        """Requests of a tenant that arrived before an instant (Unix ms) and have not ended: those
        with a lease, and admissions of which a gateway, there or not, has a copy."""
        found = {UUID(name.decode()) for name in await self._due(tenant_id)}
        admitted: set[UUID] = set()
        ended: set[UUID] = set()
        for name in await self._gateways.standings():
            async for copy in self._copies.of(name):
                if isinstance(copy.body, UsageRecord):
                    ended.add(copy.request_id)
                elif copy.body.tenant_id == tenant_id:
                    admitted.add(copy.request_id)
        first_later = UUID(int=before_ms << 80)
        return frozenset(each for each in found | admitted - ended if each < first_later)

    async def not_shipped(self, within_s: float) -> tuple[str, ...]:
        """Gateways that may have recorded something by now that is not in Postgres, after waiting a
        while for them: those that are there and are late, and those that are gone with some."""
        instant_ms = await self._gateways.ask()
        deadline_s = time.monotonic() + within_s
        while True:
            late = await self._gateways.waited_for(instant_ms)
            if not late or time.monotonic() > deadline_s:
                break
            await asyncio.sleep(PERIOD_S / 2)
        census = await self._gateways.census()
        gone = completeness(
            {
                name: standing
                for name, standing in census.standings.items()
                if standing.seen_ms <= census.now_ms - GONE_MS
            },
            now_ms=census.now_ms,
        )
        return (*late, *gone.behind)

    async def is_there(self, gateway_id: str) -> bool:
        """Whether a gateway was seen in the last minute."""
        return not (await self.heartbeats()).is_gone(gateway_id)

    async def is_restored(self, connection: AsyncConnection) -> bool:
        """Whether changes in Postgres are known to be lost, by a look at it now, and nobody has
        confirmed that. Raises also what the driver of Postgres raises."""
        return await find_restored(await self._past.read(), connection) is not None

    async def lost_numbers(self, connection: AsyncConnection) -> list[LostNumbers]:
        """Numbers that customers have and Postgres does not know of. Raises as `is_restored`."""
        remembered = await self._numbers.read()
        return lost_numbers(remembered, await load_numbers(connection))

    async def owner_of_number(self, number: str) -> Owner | None:
        """Whose invoice had it; None where that is not known."""
        return await self._numbers.owner(number)

    async def _look(self) -> Look:
        look = await self.heartbeats()
        admitted: dict[UUID, str] = {}
        ended: set[UUID] = set()
        for name in look.standings:
            async for copy in self._copies.of(name):
                if isinstance(copy.body, UsageRecord):
                    ended.add(copy.request_id)
                    admitted.pop(copy.request_id, None)
                elif copy.request_id not in ended:
                    admitted[copy.request_id] = name
        return Look(look.standings, look.now_ms, await self._leases(), admitted, frozenset(ended))

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

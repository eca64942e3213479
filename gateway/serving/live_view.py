"""What runs now, over all gateways: the body of `GET /admin/v1/live`.

However many pages show it, a gateway looks once a second for them: who comes while it does waits
for the same look, who comes after is shown what it saw. Programs are shown what is now.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gateway.domain.hosted import in_order
from gateway.domain.latency import Targets
from gateway.domain.pools import pools_of
from gateway.domain.scopes import tenant_scope
from gateway.domain.tenant import RequestClass, Tenant, waiting_of
from gateway.errors import StoreUnavailable
from gateway.serving.condition import Watch
from gateway.serving.hosted import HostedFallback
from gateway.serving.hosted_use import HostedUse, Use
from gateway.serving.latencies import Latencies
from gateway.serving.limits_view import use_view
from gateway.serving.live_parts import Measured, hosted_view, latency_views, worker_view
from gateway.serving.month_now import month_now
from gateway.serving.ports import Clock, Directory, Fleet, Ledger, LedgerUnavailable
from gateway.serving.queue_looks import PoolLooks
from gateway.serving.queue_view import Json, Uses, pool_view, queued_of, waiting_in
from gateway.serving.shared_looks import SharedLooks

TENANTS_SHOWN_MAX = 1_000
LOOKED_AT_ONCE = 64
"""So many looks at tenants are under way together: they share one connection's round trips, and
leave the store's turn to others between."""
KEPT_MS = 1_000
LATENCIES, HOSTED_USE = "latencies", "hosted_use"
"""What `degraded` names where the store did not tell them."""
Live = dict[str, Any]
"""The view, in plain values."""
Result = TypeVar("Result")


@dataclass
class LiveView:
    """Looks at everything, for pages at most once a second. What a gateway measured of others'
    requests is in `latencies`, what runs at hosted providers in `hosted_use`."""

    directory: Directory
    ledger: Ledger
    fleet: Fleet
    watch: Watch
    fallback: HostedFallback
    clock: Clock
    looks: PoolLooks
    latencies: Latencies
    hosted_use: HostedUse
    targets: Mapping[RequestClass, Targets]
    own_looks: SharedLooks = field(default_factory=SharedLooks)
    """Those of tenants at how they stand themselves."""
    _seen: tuple[int, Live] | None = None
    _tokens: int | None = None
    _looking: "asyncio.Task[Live] | None" = field(default=None)

    async def look(self) -> Live:
        """As it was within the last second. Raises StoreUnavailable where nothing of the tenants
        is known."""
        if self._seen is not None:
            at_us, seen = self._seen
            if self.clock.monotonic_us() - at_us < KEPT_MS * 1000:
                return seen
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        # Others wait for it too, so it goes on where one of them leaves.
        return await asyncio.shield(self._looking)

    async def look_now(self) -> Live:
        """As it is now, for a program that has just changed something. Raises as `look` does."""
        return await self._whole()

    async def tokens_last_minute(self) -> int | None:
        """What all tenants that are shown were charged; None where one of them could not be seen.
        Raises StoreUnavailable."""
        await self.look()
        return self._tokens

    def alone(self) -> Live:
        """What this gateway knows by itself, for while `look` raises: workers and providers without
        what the store tells of them, no tenants and no queues."""
        models = [model.id for model in self.directory.models()]
        uses: Uses = dict.fromkeys(pools_of(models, self.directory.workers()))
        return {
            "tenants": [],
            "pools": [pool_view(pool, use) for pool, use in uses.items()],
            "latency": None,
            **self._near(uses, None, None),
            "degraded": list(dict.fromkeys(["redis", *self._words()])),
        }

    async def _look(self) -> Live:
        try:
            seen = await self._whole()
            self._seen = self.clock.monotonic_us(), seen
        finally:
            self._looking = None
        return seen

    async def _whole(self) -> Live:
        try:
            active = await self.ledger.active_tenants(TENANTS_SHOWN_MAX)
        except LedgerUnavailable as error:
            raise StoreUnavailable("Redis cannot be reached") from error
        models = [model.id for model in self.directory.models()]
        uses = await self.looks.look_at(pools_of(models, self.directory.workers()))
        names = dict.fromkeys([*active, *waiting_in(uses)])
        known = [each for each in map(self.directory.tenant, names) if each is not None]
        known = known[:TENANTS_SHOWN_MAX]
        views = await self._tenants(known, uses)
        unseen = [tenant.id for tenant, view in zip(known, views, strict=True) if view is None]
        if known and len(unseen) == len(known):
            raise StoreUnavailable("Redis cannot be reached")
        self._tokens = None if unseen else sum(view[0] for view in views if view is not None)
        measured = await _if_told(self.latencies.figures())
        used = await _if_told(self.hosted_use.all())
        return {
            "tenants": [view[1] for view in views if view is not None],
            "pools": [pool_view(pool, use) for pool, use in uses.items()],
            "latency": latency_views(models, measured, self.targets),
            **self._near(uses, used, measured),
            "degraded": [
                *self._words(),
                *((LATENCIES,) if measured is None else ()),
                *((HOSTED_USE,) if used is None else ()),
                *(f"redis:{tenant_id}" for tenant_id in unseen),
                *(f"queue:{pool}" for pool, use in uses.items() if use is None),
            ],
        }

    def _near(self, uses: Uses, used: Mapping[str, Use] | None, measured: Measured) -> Live:
        """Workers and providers, which this gateway itself looks at."""
        return {
            "workers": [worker_view(view, uses, measured) for view in self.fleet.views()],
            "hosted": [
                hosted_view(each, self.fallback.circuit(each.id), used, measured)
                for each in in_order(self.directory.hosted_providers())
            ],
        }

    def _words(self) -> list[str]:
        condition = self.watch.condition()
        return [*condition.unready, *condition.degraded]

    async def _tenants(self, tenants: list[Tenant], uses: Uses) -> list[tuple[int, Json] | None]:
        views: list[tuple[int, Json] | None] = []
        for start in range(0, len(tenants), LOOKED_AT_ONCE):
            batch = tenants[start : start + LOOKED_AT_ONCE]
            views += await asyncio.gather(*(self._tenant(tenant, uses) for tenant in batch))
        return views

    async def _tenant(self, tenant: Tenant, uses: Uses) -> tuple[int, Json] | None:
        """What it was charged in the last minute, and how it is shown."""
        month = month_now(tenant, self.clock.now_ms())
        try:
            (use,) = await self.ledger.observe(tenant.id, [tenant_scope(tenant)], month.key)
        except LedgerUnavailable:
            return None
        return use.tokens, {
            "id": tenant.id,
            "name": tenant.name,
            "suspended": tenant.suspended,
            **use_view(use, month),
            "max_queued": waiting_of(tenant.limits).max_queued,
            "sequences_queued": queued_of(tenant.id, uses),
        }


async def _if_told(asked: Awaitable[Result]) -> Result | None:
    try:
        return await asked
    except LedgerUnavailable:
        return None

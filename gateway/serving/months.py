"""The rebuild of a month's money in the store, from the usage records in Postgres.

The store adds up what settles from the moment a month is begun, and refuses to decide on a budget
until it has been given what was spent before. That is the sum of the month's records, less those
of requests that the store accounts for itself, all from one view of Postgres. The order makes it
exact: begin; wait until every gateway has shipped what it had recorded by then; look at the
records; ask the store which requests it accounts for; hand over the difference. Every step can be
lost: whoever comes next begins again, and a difference that belongs to an earlier beginning is not
taken.
"""

import asyncio
import contextlib
import logging
import time
from enum import StrEnum
from uuid import uuid4

from gateway.domain.admission import MonthBegun
from gateway.domain.billing_month import month_of
from gateway.domain.scopes import tenant_scope
from gateway.domain.spend import spent_by_scope
from gateway.domain.tenant import Tenant
from gateway.serving.month_ports import Shipping, Spend, SpendUnavailable, Turns
from gateway.serving.ports import Births, Directory, Ledger, LedgerUnavailable
from gateway.telemetry import months as metrics
from gateway.telemetry.logs import log_failure

POLL_S = 0.05
REGISTERED_POLL_S = 0.25
ANOTHERS_S = 3.0
"""Another gateway's rebuild is waited for so long: after that time it may be begun again."""
UNSHIPPED_S = 30.0
"""A gateway that does not ship is waited for so long, then the rebuild is given up."""
_log = logging.getLogger(__name__)


class Rebuilt(StrEnum):
    """How a rebuild ended."""

    DONE = "done"
    ANOTHER = "another"
    """Another gateway was at it."""
    SUPERSEDED = "superseded"
    """It was begun again meanwhile."""
    EARLY = "early"
    """The store came back empty a moment ago: what runs has not all been registered again."""
    UNSHIPPED = "unshipped"
    """A gateway has not shipped what it recorded."""
    POSTGRES = "postgres"
    REDIS = "redis"
    FAILED = "failed"
    """A bug of ours, logged."""


KEEP_TURN_S = 1.0
RECOUNT_AGAIN_S = 1.0
RECOUNT_LOOKS_S = (0.0, 5.0, 50.0)
"""A month that has to be counted again is looked at so long after another: a rebuild that was under
way is over by then, and one that begins later counts it in any case."""


class Months:
    """Has the store know what tenants have spent. One rebuild at a time for a tenant and month, in
    this gateway by `_flights`, over all gateways by turns and by the store, which begins a month at
    most once in 3 s. Implements `ports.MonthRebuild`."""

    def __init__(
        self,
        directory: Directory,
        ledger: Ledger,
        births: Births,
        shipping: Shipping,
        *,
        spend: Spend,
        turns: Turns,
        lease_ttl_ms: int,
    ) -> None:
        self._directory = directory
        self._ledger = ledger
        self._births = births
        self._shipping = shipping
        self._spend = spend
        self._turns = turns
        self._holder = uuid4().hex
        self._lease_ttl_ms = lease_ttl_ms
        self._flights: dict[tuple[str, str], asyncio.Task[Rebuilt]] = {}
        self._cut_short: set[tuple[str, str]] = set()
        self._recounts: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def rebuild(self, tenant_id: str, month: str) -> bool:
        """Have the store know the month: True where it may know it now, so that the question is
        worth repeating. Whoever waits for it may be cancelled: it goes on. Does not raise."""
        flight = self._flights.get((tenant_id, month))
        if flight is None:
            flight = asyncio.create_task(self._fly(tenant_id, month))
            self._flights[tenant_id, month] = flight
            flight.add_done_callback(lambda _: self._flights.pop((tenant_id, month), None))
        await asyncio.wait({flight})
        return not flight.cancelled() and flight.result() in _MAY_BE_KNOWN

    def recount(self, tenant_id: str, month: str) -> None:
        """Have a month that the store knows summed up again, behind the requests: something was
        recorded of which nobody can say whether the store has counted it."""
        if (tenant_id, month) not in self._recounts:
            task = asyncio.create_task(self._recount(tenant_id, month))
            self._recounts[tenant_id, month] = task
            task.add_done_callback(lambda _: self._recounts.pop((tenant_id, month), None))

    async def until_recounted(self) -> None:
        """Wait for all that `recount` was asked for."""
        while self._recounts:
            await asyncio.wait(self._recounts.values())

    async def stop(self) -> None:
        """Give up what is under way; another gateway, or the next request, begins again."""
        tasks = [*self._flights.values(), *self._recounts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _recount(self, tenant_id: str, month: str) -> None:
        tenant = self._directory.tenant(tenant_id)
        for pause_s in RECOUNT_LOOKS_S:
            await asyncio.sleep(pause_s)
            if tenant is None:
                return
            with contextlib.suppress(LedgerUnavailable):
                while await self._is_known(tenant, month):
                    if await self._fly(tenant_id, month) is Rebuilt.DONE:
                        return
                    await asyncio.sleep(RECOUNT_AGAIN_S)

    async def _fly(self, tenant_id: str, month: str) -> Rebuilt:
        began_s = time.monotonic()
        try:
            result = await self.attempt(tenant_id, month)
        except LedgerUnavailable:
            result = Rebuilt.REDIS
        except SpendUnavailable as error:
            _log.warning("a month's records cannot be summed (%s)", error.reason.__name__)
            result = Rebuilt.POSTGRES
        except Exception as error:  # noqa: BLE001 - counted and logged; the request is a 503
            log_failure(_log, error, "the rebuild of a month failed")
            result = Rebuilt.FAILED
        metrics.REBUILDS.labels(result=result.value).inc()
        if result is Rebuilt.DONE:
            metrics.REBUILD_SECONDS.observe(time.monotonic() - began_s)
        return result

    async def attempt(self, tenant_id: str, month: str) -> Rebuilt:
        """One rebuild. Raises LedgerUnavailable, SpendUnavailable."""
        tenant = self._directory.tenant(tenant_id)
        if tenant is None:
            return Rebuilt.FAILED
        await self._registered(tenant.id)
        if not await self._turns.claim(tenant.id, month, self._holder):
            return await self._anothers(tenant, month)
        keeping = asyncio.create_task(self._keep_turn(tenant.id, month))
        try:
            result = await self._in_turn(tenant, month)
        except LedgerUnavailable:
            # Our own beginning, if it took effect at all, is no other gateway's to be waited for.
            self._cut_short.add((tenant_id, month))
            raise
        else:
            self._cut_short.discard((tenant_id, month))
            return result
        finally:
            keeping.cancel()
            with contextlib.suppress(LedgerUnavailable):
                await self._turns.release(tenant.id, month, self._holder)

    async def _in_turn(self, tenant: Tenant, month: str) -> Rebuilt:
        again = (tenant.id, month) in self._cut_short
        begun = await self._ledger.begin_month(tenant.id, month, again=again)
        if begun is None:
            return await self._anothers(tenant, month)
        born_ms = await self._births.born_ms(tenant.id)
        if born_ms and begun.at_ms < born_ms + self._lease_ttl_ms:
            return Rebuilt.EARLY
        if not await self._shipped():
            return Rebuilt.UNSHIPPED
        spent = await self._spent_before(tenant, month, begun)
        taken = await self._ledger.finish_month(tenant.id, month, begun.at_ms, spent)
        return Rebuilt.DONE if taken else Rebuilt.SUPERSEDED

    async def _keep_turn(self, tenant_id: str, month: str) -> None:
        """A sum over many records takes longer than the 3 s after which others may begin again."""
        while True:
            await asyncio.sleep(KEEP_TURN_S)
            with contextlib.suppress(LedgerUnavailable):
                await self._turns.claim(tenant_id, month, self._holder)

    async def _registered(self, tenant_id: str) -> None:
        """Wait until a store that came back empty has heard of everything that runs: its holders
        register it again when they renew, so one lease time is enough."""
        born_ms = await self._births.born_ms(tenant_id)
        if born_ms:
            known_ms = born_ms + self._lease_ttl_ms
            while await self._shipping.ask() < known_ms:  # noqa: ASYNC110 - it is the store's time
                await asyncio.sleep(REGISTERED_POLL_S)

    async def _shipped(self) -> bool:
        deadline_s = time.monotonic() + UNSHIPPED_S
        instant_ms = await self._shipping.ask()
        while behind := await self._shipping.waited_for(instant_ms):
            if time.monotonic() > deadline_s:
                _log.warning("a month cannot be summed: not shipped by %s", ", ".join(behind))
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _spent_before(self, tenant: Tenant, month: str, begun: MonthBegun) -> dict[str, int]:
        async with self._spend.snapshot(tenant.id, month_of(month)) as snapshot:
            recorded = await snapshot.costs()
            # After the view is fixed: whatever settles from here on, its record may be in it.
            own = begun.held | await self._ledger.unsettled_or_recent(tenant.id)
            accounted = await snapshot.costs_of(own)
        return spent_by_scope(recorded, accounted)

    async def _anothers(self, tenant: Tenant, month: str) -> Rebuilt:
        """Wait for another gateway's rebuild, as long as nobody may begin it again."""
        deadline_s = time.monotonic() + ANOTHERS_S
        while time.monotonic() < deadline_s:
            if await self._is_known(tenant, month):
                break
            await asyncio.sleep(POLL_S)
        return Rebuilt.ANOTHER

    async def _is_known(self, tenant: Tenant, month: str) -> bool:
        (use,) = await self._ledger.observe(tenant.id, (tenant_scope(tenant),), month)
        return use.spent_pico is not None


_MAY_BE_KNOWN = frozenset({Rebuilt.DONE, Rebuilt.ANOTHER, Rebuilt.SUPERSEDED})

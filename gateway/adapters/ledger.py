"""The ledger of leases and reservations in Redis: runs the Lua scripts, maps their replies.

Holds no arithmetic of its own: the rules are `gateway.domain.admission`, executed by `lua/*.lua`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from gateway.adapters import ledger_records as records
from gateway.adapters.active_tenants import ActiveTenants, answer
from gateway.adapters.ledger_scripts import Argument, LedgerScripts
from gateway.adapters.redis import RedisClient
from gateway.domain.admission_checks import reservation
from gateway.domain.decisions import (
    Demand,
    Granted,
    MoneyUnknown,
    MonthBegun,
    Paused,
    Refused,
    Renewed,
    Settled,
)
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.ports import Births, HeldLease, LedgerUnavailable
from gateway.serving.sweeping import IDLE_MS

RENEWED_AT_ONCE = 256
"""Leases that one script renews: a larger holder does not keep the others of its server waiting."""


class RedisLedger(ActiveTenants):
    """Every call is one atomic script on one tenant's keys, which share a hash slot.

    Raises LedgerUnavailable where Redis cannot be reached, refuses, or takes longer than
    `timeout_ms`; then the operation may or may not have taken effect, and repeating it is safe.
    `births` says since when a tenant's part of the store is complete; without it nothing is ever
    taken for lost. `clock_ms` replaces the server's time in tests.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        ttl_ms: int,
        timeout_ms: int,
        births: Births | None = None,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(redis)
        self._ttl_ms = ttl_ms
        self._clock_ms = clock_ms
        self._scripts = LedgerScripts(
            redis, births=births, ttl_ms=ttl_ms, timeout_ms=timeout_ms, clock_ms=clock_ms,
            on_begun=self._begun,
        )  # fmt: skip

    async def acquire(
        self,
        tenant_id: str,
        key_id: str,
        model: str,
        demand: Demand,
        scopes: Sequence[ScopeLimits],
    ) -> Granted | Refused | Paused | MoneyUnknown:
        """One decision over all scopes. Idempotent by request id."""
        reserved = reservation(demand, tuple(scopes))
        arguments = (
            demand.request_id, *records.fields(key_id, model),
            records.packed_grant(demand, key_id, model, reserved),
            records.packed_offer(demand, scopes, reserved, self._ttl_ms),
        )  # fmt: skip
        reply = await self._scripts.run("acquire", tenant_id, arguments)
        return records.answer(reply, demand, scopes, reserved)

    async def settle(
        self, lease: HeldLease, *, actual_tokens: int, ran: bool, actual_cost_pico: int = 0
    ) -> Settled:
        """End a lease. Repeating it changes nothing."""
        actual = records.packed_actual(
            actual_tokens + lease.base_tokens,
            actual_cost_pico + lease.base_cost_pico,
            ran=ran or lease.base_tokens > 0,
            carried=lease.carried,
        )
        fields = records.fields(lease.key_id, lease.model)
        arguments = (lease.request_id, *fields, lease.month, actual)
        (found,) = await self._scripts.run("settle", lease.tenant_id, arguments)
        return records.SETTLED[cast("int", found)]

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        """Prolong leases of one tenant; what lapsed or was lost is taken up again. `now_ms` is when
        the first of them were."""
        counts, now_ms = [0, 0, 0, 0], 0
        for start in range(0, len(leases), RENEWED_AT_ONCE):
            arguments: list[Argument] = [self._ttl_ms]
            for lease in leases[start : start + RENEWED_AT_ONCE]:
                packed = records.packed_lease(lease)
                arguments += [lease.request_id, packed, int(lease.carried)]
            *found, at_ms = cast(
                "list[int]", await self._scripts.run("renew", tenant_id, arguments)
            )
            counts = [count + more for count, more in zip(counts, found, strict=True)]
            now_ms = now_ms or at_ms
        renewed, resumed, recreated, over = counts
        return Renewed(renewed, resumed, recreated, over, now_ms)

    async def begin_month(
        self, tenant_id: str, month: str, *, again: bool = False
    ) -> MonthBegun | None:
        """Track a month's money from now on."""
        begun, *rest = await self._scripts.run("begin_month", tenant_id, [month, int(again)])
        if not begun:
            return None
        return MonthBegun(cast("int", rest[0]), _names(rest[1:]))

    async def unsettled_or_recent(self, tenant_id: str) -> frozenset[str]:
        """Requests whose money the store accounts for itself."""
        return _names((await self._scripts.run("unsettled", tenant_id, []))[1:])

    async def finish_month(
        self, tenant_id: str, month: str, at_ms: int, spent: Mapping[str, int]
    ) -> bool:
        """Add what the month cost before, and count it as known."""
        arguments: list[Argument] = [month, at_ms]
        for scope, pico in spent.items():
            arguments += [scope, *divmod(pico, records.PICO_PER_UNIT)]
        (finished,) = await self._scripts.run("finish_month", tenant_id, arguments)
        return bool(finished)

    async def observe(
        self, tenant_id: str, scopes: Sequence[ScopeLimits], month: str = ""
    ) -> tuple[ScopeUse, ...]:
        """Limits in force and use now; offers newer limits to every replica on the way."""
        arguments: list[Argument] = [month, records.packed_limits(scopes)]
        arguments += [f"@{scope.scope}" for scope in scopes]
        _, _, *packed = await self._scripts.run("observe", tenant_id, arguments)
        return records.uses(packed, scopes)

    async def reap(self, tenant_id: str) -> tuple[int, int]:
        """Let what nobody renewed lapse; returns leases held and lapsed ones remembered."""
        reply = await self._scripts.run("observe", tenant_id, ("", b""), is_urgent=False)
        return cast("int", reply[0]), cast("int", reply[1])

    async def _begun(self, tenant_id: str, born_ms: int, is_look: bool) -> None:
        """Nothing was known of it, so neither may be that it is active. Who only looks at an idle
        tenant marks nobody, unless gateways may still rely on marks that the store has lost. Where
        this fails its next mark says so."""
        now_ms = int(time.time() * 1000) if self._clock_ms is None else self._clock_ms()
        was_lost = born_ms > 0 and now_ms - born_ms <= IDLE_MS
        if is_look and not was_lost:
            return
        with suppress(LedgerUnavailable):
            await self.mark_active([tenant_id], now_ms=now_ms)

    async def clock_ms(self) -> int:
        """Redis's time, Unix ms."""
        seconds, micros = cast("tuple[int, int]", await answer(self._redis.time()))
        return int(seconds) * 1000 + int(micros) // 1000

    async def ping(self) -> None:
        """Whether Redis, or a shard of it, runs scripts and takes what they write, in time."""
        await answer(self._redis.ping())


def _names(reply: Sequence[object]) -> frozenset[str]:
    return frozenset(cast("bytes", name).decode() for name in reply)

"""The ledger of leases and reservations in Redis: runs the Lua scripts, maps their replies.

Holds no arithmetic of its own: the rules are `gateway.domain.admission`, executed by `lua/*.lua`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import cast

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient, Script
from gateway.domain.admission import (
    Demand,
    Granted,
    Kind,
    MoneyUnknown,
    MonthBegun,
    Paused,
    Refused,
    Renewed,
    Settled,
)
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.ports import HeldLease, LedgerUnavailable

_KINDS = {1: Kind.SEQUENCES, 2: Kind.REQUESTS, 3: Kind.TOKENS}
_SETTLED = {1: Settled.LIVE, 2: Settled.LAPSED, 3: Settled.REPEATED, 4: Settled.UNKNOWN}
_USE_FIELDS = 8
_HELD_UP_S = 0.02
"""A time-out noticed so late says that this process was busy, not that Redis was."""


def _load(redis: RedisClient, name: str) -> Script:
    folder = files("gateway.adapters") / "lua"
    source = (folder / "prelude.lua").read_text() + (folder / f"{name}.lua").read_text()
    return redis.register_script(source)


class RedisLedger:
    """Every call is one atomic script on one tenant's keys, which share a hash slot.

    Raises LedgerUnavailable where Redis cannot be reached, refuses, or takes longer than
    `timeout_ms`; then the operation may or may not have taken effect, and repeating it is safe.
    `clock_ms` replaces the server's time in tests.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        ttl_ms: int,
        timeout_ms: int,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        self._redis = redis
        self._ttl_ms = ttl_ms
        self._timeout_s = timeout_ms / 1000
        self._clock_ms = clock_ms
        self._acquire = _load(redis, "acquire")
        self._settle = _load(redis, "settle")
        self._renew = _load(redis, "renew")
        self._observe = _load(redis, "observe")
        self._ping = _load(redis, "ping")

    async def acquire(
        self,
        tenant_id: str,
        key_id: str,
        model: str,
        demand: Demand,
        scopes: Sequence[ScopeLimits],
    ) -> Granted | Refused | Paused | MoneyUnknown:
        """One decision over all scopes. Idempotent by request id."""
        arguments = [
            self._now(), demand.request_id, self._ttl_ms, demand.sequences, demand.tokens,
            demand.floor_tokens, key_id, model, *_flat(scopes),
        ]  # fmt: skip
        names = [scope.scope for scope in scopes]
        reply = _integers(await self._run(self._acquire, tenant_id, names, arguments))
        if reply[0] == 1:
            return Granted(reply[1], reply[2], _uses(reply[4:], scopes), reply[3])
        _, kind, index, limit, used, need, wait_ms = reply[:7]
        uses = _uses(reply[7:], scopes)
        return Refused(
            _KINDS[kind], uses[index - 1].limits, limit, used, need,
            None if wait_ms < 0 else wait_ms, uses,
        )  # fmt: skip

    async def settle(
        self, lease: HeldLease, *, actual_tokens: int, ran: bool, actual_cost_pico: int = 0
    ) -> Settled:
        """End a lease. Repeating it changes nothing."""
        arguments = [self._now(), lease.request_id, actual_tokens, 1 if ran else 0]
        reply = await self._run(self._settle, lease.tenant_id, lease.scope_names, arguments)
        return _SETTLED[int(cast("int", reply))]

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        """Prolong leases of one tenant; what lapsed or was lost is taken up again."""
        arguments: list[str | int] = [self._now(), self._ttl_ms]
        for lease in leases:
            arguments += [lease.request_id, _packed(lease)]
        reply = _integers(await self._run(self._renew, tenant_id, [], arguments))
        return Renewed(*reply)

    async def begin_month(self, tenant_id: str, month: str) -> MonthBegun | None:
        """Track a month's money from now on."""
        raise NotImplementedError

    async def unsettled_or_recent(self, tenant_id: str) -> frozenset[str]:
        """Requests whose money the store accounts for itself."""
        raise NotImplementedError

    async def finish_month(
        self, tenant_id: str, month: str, at_ms: int, spent: Mapping[str, int]
    ) -> bool:
        """Add what the month cost before, and count it as known."""
        raise NotImplementedError

    async def observe(
        self, tenant_id: str, scopes: Sequence[ScopeLimits], month: str = ""
    ) -> tuple[ScopeUse, ...]:
        """Limits in force and use now; offers newer limits to every replica on the way."""
        names = [scope.scope for scope in scopes]
        arguments = [self._now(), *_flat(scopes)]
        reply = _integers(await self._run(self._observe, tenant_id, names, arguments))
        return _uses(reply[2:], scopes)

    async def reap(self, tenant_id: str) -> tuple[int, int]:
        """Let what nobody renewed lapse; returns leases held and lapsed ones remembered."""
        reply = _integers(await self._run(self._observe, tenant_id, [], [self._now()]))
        return reply[0], reply[1]

    async def mark_active(self, tenant_ids: Sequence[str], *, now_ms: int) -> None:
        """Remember that these tenants may hold leases, so that any gateway can reap them."""
        scores = dict.fromkeys(tenant_ids, now_ms)
        await self._bounded(lambda: self._redis.zadd("weir:active", scores))

    async def active_tenants(self, at_most: int) -> list[str]:
        """Tenants that may hold something, the most recently active first."""
        names = await self._bounded(lambda: self._redis.zrevrange("weir:active", 0, at_most - 1))
        return [name.decode() for name in cast("list[bytes]", names)]

    async def clock_ms(self) -> int:
        """Redis's time, Unix ms."""
        seconds, micros = cast("tuple[int, int]", await self._bounded(self._redis.time))
        return int(seconds) * 1000 + int(micros) // 1000

    async def sweep(self, *, now_ms: int, idle_ms: int, period_ms: int) -> int:
        """Reap every active tenant, unless another gateway did within `period_ms`.

        Returns how many leases are held in all, or -1 where it was another's turn.
        """
        turn = await self._bounded(
            lambda: self._redis.set("weir:sweep", "1", nx=True, px=max(1, period_ms))
        )
        if not turn:
            return -1
        held = 0
        active = await self._bounded(
            lambda: self._redis.zrange("weir:active", 0, -1, withscores=True)
        )
        for name, score in cast("list[tuple[bytes, float]]", active):
            tenant_id = name.decode()
            leases, lapsed = await self.reap(tenant_id)
            held += leases
            if leases == lapsed == 0 and score < now_ms - idle_ms:
                await self._bounded(partial(self._redis.zrem, "weir:active", tenant_id))
        return held

    async def ping(self) -> None:
        """Whether Redis runs scripts and takes what they write, in time."""
        await self._bounded(lambda: self._ping(keys=["weir:ping"], args=[""]))

    def _now(self) -> str | int:
        return "" if self._clock_ms is None else self._clock_ms()

    async def _run(
        self,
        script: Script,
        tenant_id: str,
        scopes: Sequence[str],
        arguments: Sequence[str | int],
    ) -> object:
        prefix = f"weir:{{{tenant_id}}}:"
        keys = [
            prefix + name for name in ("leases", "held", "running", "settled", "lapsed", "limits")
        ] + [f"{prefix}window:{scope}" for scope in scopes]
        return await self._bounded(lambda: script(keys=keys, args=arguments))

    async def _bounded(self, call: Callable[[], Awaitable[object]]) -> object:
        """The reply within the time-out. Where this process itself was held up, so that the time
        ran out before the reply could be read, the call is made once more: every call is safe to
        repeat."""
        began = time.monotonic()
        try:
            return await self._once(call)
        except LedgerUnavailable as error:
            late_s = time.monotonic() - began - self._timeout_s
            if error.reason is not TimeoutError or late_s < _HELD_UP_S:
                raise
            return await self._once(call)

    async def _once(self, call: Callable[[], Awaitable[object]]) -> object:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call()
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error


def _flat(scopes: Sequence[ScopeLimits]) -> list[str | int]:
    flat: list[str | int] = []
    for scope in scopes:
        limits = (scope.max_sequences, scope.tpm, scope.rpm)
        flat += [scope.scope, scope.version, *(-1 if n is None else n for n in limits)]
    return flat


def _packed(lease: HeldLease) -> str:
    return f"{lease.sequences}|{lease.reserved_tokens}|{lease.second}|{lease.key_id}|{lease.model}"


def _integers(reply: object) -> list[int]:
    return [int(number) for number in cast("list[int]", reply)]


def _uses(flat: Sequence[int], scopes: Sequence[ScopeLimits]) -> tuple[ScopeUse, ...]:
    def limit(number: int) -> int | None:
        return None if number < 0 else number

    uses = []
    for index, scope in enumerate(scopes):
        version, sequences_max, tpm, rpm, sequences, tokens, requests, reset_ms = flat[
            index * _USE_FIELDS : (index + 1) * _USE_FIELDS
        ]
        in_force = ScopeLimits(scope.scope, version, limit(sequences_max), limit(tpm), limit(rpm))
        uses.append(ScopeUse(in_force, sequences, tokens, requests, reset_ms))
    return tuple(uses)

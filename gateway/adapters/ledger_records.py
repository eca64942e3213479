"""How the ledger's scripts are told things, and how they answer: packed numbers, little-endian.

Numbers travel as doubles, exact up to 2^53; an amount of money as two, whole units of the currency
and pico below 10^12. `lua/head.lua` has the other side.
"""

import struct
from collections.abc import Sequence
from typing import cast

from gateway.domain.admission_checks import reservation
from gateway.domain.decisions import Demand, Granted, Kind, MoneyUnknown, Paused, Refused, Settled
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.ports import HeldLease

PICO_PER_UNIT = 10**12
SETTLED = {1: Settled.LIVE, 2: Settled.LAPSED, 3: Settled.REPEATED, 4: Settled.UNKNOWN}
_KINDS = {1: Kind.SEQUENCES, 2: Kind.REQUESTS, 3: Kind.TOKENS, 4: Kind.BUDGET}
_NONE = -1
_LIMITS = struct.Struct("<6d")
_USE = struct.Struct("<4d")
_FUND = struct.Struct("<4d")
_DEMAND = struct.Struct("<7d")
_GRANTED = struct.Struct("<16d")
_LEASE = struct.Struct("<6d")
_ACTUAL = struct.Struct("<5d")

Answer = Granted | Refused | Paused | MoneyUnknown
Reply = list[object] | bytes


def packed_limits(scopes: Sequence[ScopeLimits]) -> bytes:
    """The limits of scopes, in their order."""
    packed = b""
    for scope in scopes:
        sequences, tpm, rpm, budget = scope.max_sequences, scope.tpm, scope.rpm, scope.budget_pico
        packed += _LIMITS.pack(
            scope.version,
            _NONE if sequences is None else sequences,
            _NONE if tpm is None else tpm,
            _NONE if rpm is None else rpm,
            *((_NONE, 0) if budget is None else divmod(budget, PICO_PER_UNIT)),
        )
    return packed


def packed_demand(demand: Demand, scopes: Sequence[ScopeLimits], ttl_ms: int) -> bytes:
    """What a request asks, and how long its lease lives."""
    units, pico = divmod(demand.cost_pico, PICO_PER_UNIT)
    need = reservation(demand, tuple(scopes))
    return _DEMAND.pack(
        demand.sequences, demand.tokens, demand.floor_tokens, ttl_ms, units, pico, need
    )


def packed_actual(tokens: int, cost_pico: int, *, ran: bool, carried: bool) -> bytes:
    """What a request used, and whether it ran, and while the store could not be reached."""
    return _ACTUAL.pack(tokens, ran, carried, *divmod(cost_pico, PICO_PER_UNIT))


def fields(key_id: str, model: str) -> tuple[str, str, str]:
    """The scopes of a request, but for the tenant, as the book names them."""
    return f"@key:{key_id}", f"@model:{model}", f"@key:{key_id}/model:{model}"


def packed_lease(lease: HeldLease) -> bytes:
    """A live lease's record, as its holder remembers it."""
    cost = divmod(lease.cost_pico, PICO_PER_UNIT)
    numbers = _LEASE.pack(0, lease.sequences, lease.reserved_tokens, lease.second, *cost)
    return b"L" + numbers + f"{lease.month}|{lease.key_id}|{lease.model}".encode()


def answer(reply: Reply, demand: Demand, scopes: Sequence[ScopeLimits]) -> Answer:
    """What `acquire.lua` replied."""
    if isinstance(reply, bytes):
        return _granted(reply, scopes)
    match reply:
        case [1, int(reserved), int(second), int(now_ms), *packed]:
            return Granted(reserved, second, uses(packed, scopes), now_ms)
        case [2, int(until_ms), int(now_ms)]:
            return Paused(until_ms, now_ms)
        case [3]:
            return MoneyUnknown(demand.month)
        case [0, int(kind), int(index), int(limit), int(used), int(need), int(wait), *packed]:
            seen = uses(packed, scopes)
            use = seen[index - 1]
            if _KINDS[kind] is Kind.BUDGET:
                limit, need = use.limits.budget_pico or 0, demand.cost_pico
                used = (use.spent_pico or 0) + (use.reserved_pico or 0)
            wait_ms = None if wait < 0 else wait
            return Refused(_KINDS[kind], use.limits, limit, used, need, wait_ms, seen)
    raise ValueError("a reply of acquire.lua that no release of it gives")


def _granted(packed: bytes, scopes: Sequence[ScopeLimits]) -> Granted:
    reserved, second, now_ms, reset_ms, *counts = map(int, _GRANTED.unpack(packed))
    uses = [
        ScopeUse(scope, running, tokens, requests, reset_ms)
        for scope, running, tokens, requests in zip(
            scopes, counts[::3], counts[1::3], counts[2::3], strict=True
        )
    ]
    return Granted(reserved, second, tuple(uses), now_ms)


def uses(packed: Sequence[object], scopes: Sequence[ScopeLimits]) -> tuple[ScopeUse, ...]:
    """The use of scopes, in their order: numbers, the month's money if it is known, and the limits
    where they are not those that were offered."""
    numbers, money, limits = cast("Sequence[bytes]", packed)
    found = []
    for index, scope in enumerate(scopes):
        sequences, tokens, requests, reset_ms = _integers(_USE, numbers, index)
        spent_pico = reserved_pico = None
        if money:
            spent, spent_rest, reserved, reserved_rest = _integers(_FUND, money, index)
            spent_pico = spent * PICO_PER_UNIT + spent_rest
            reserved_pico = reserved * PICO_PER_UNIT + reserved_rest
        in_force = _limits(scope.scope, _integers(_LIMITS, limits, index)) if limits else scope
        found.append(
            ScopeUse(in_force, sequences, tokens, requests, reset_ms, spent_pico, reserved_pico)
        )
    return tuple(found)


def _integers(layout: struct.Struct, packed: bytes, index: int) -> tuple[int, ...]:
    return tuple(map(int, layout.unpack_from(packed, index * layout.size)))


def _limits(scope: str, numbers: tuple[int, ...]) -> ScopeLimits:
    version, sequences, tpm, rpm, budget, budget_rest = numbers
    return ScopeLimits(
        scope,
        version,
        None if sequences < 0 else sequences,
        None if tpm < 0 else tpm,
        None if rpm < 0 else rpm,
        None if budget < 0 else budget * PICO_PER_UNIT + budget_rest,
    )

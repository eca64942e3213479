"""How the ledger's scripts are told things, and how they answer: packed numbers, little-endian.

Numbers travel as doubles, exact up to 2^53; an amount of money as two, whole units of the currency
and pico below 10^12. `lua/head.lua` has the other side.
"""

import struct
from collections.abc import Sequence
from typing import cast

from gateway.domain.decisions import Demand, Granted, Kind, MoneyUnknown, Paused, Refused, Settled
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.window import WINDOW_CELLS
from gateway.serving.ports import HeldLease

PICO_PER_UNIT = 10**12
SETTLED = {1: Settled.LIVE, 2: Settled.LAPSED, 3: Settled.REPEATED, 4: Settled.UNKNOWN}
_KINDS = {1: Kind.SEQUENCES, 2: Kind.REQUESTS, 3: Kind.TOKENS, 4: Kind.BUDGET}
_NONE = -1
_NO_LIMIT = 2**53
_LIMITS = struct.Struct("<6d")
_USE = struct.Struct("<4d")
_FUND = struct.Struct("<4d")
_DEMAND = struct.Struct("<17d")
_GRANTED = struct.Struct("<33d")
_LEASE = struct.Struct("<4d")
_CHARGED = struct.Struct("<d")
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


def packed_offer(
    demand: Demand, scopes: Sequence[ScopeLimits], reserved_tokens: int, ttl_ms: int
) -> bytes:
    """The four scopes' limits, what a request asks, and how long its lease lives. Where a scope has
    a budget, or the request asks for more than a limit is, that is left to the unusual way."""
    most = []
    for scope in scopes:
        sequences, tpm, rpm = scope.max_sequences, scope.tpm, scope.rpm
        if scope.budget_pico is not None or (tpm is not None and demand.floor_tokens > tpm):
            sequences = _NONE
        most += [
            _NO_LIMIT if sequences is None else sequences,
            _NO_LIMIT if tpm is None else tpm,
            _NO_LIMIT if rpm is None else rpm,
        ]
    return packed_limits(scopes) + _DEMAND.pack(
        *most, demand.sequences, reserved_tokens, ttl_ms, demand.tokens, demand.floor_tokens
    )


def packed_grant(demand: Demand, key_id: str, model: str, reserved_tokens: int) -> bytes:
    """The record of the lease that is asked for, but for when it is charged."""
    cost = divmod(demand.cost_pico, PICO_PER_UNIT)
    numbers = _LEASE.pack(demand.sequences, reserved_tokens, *cost)
    return numbers + f"{demand.month}|{key_id}|{model}".encode()


def packed_actual(tokens: int, cost_pico: int, *, ran: bool, carried: bool) -> bytes:
    """What a request used, and whether it ran, and while the store could not be reached."""
    return _ACTUAL.pack(tokens, ran, carried, *divmod(cost_pico, PICO_PER_UNIT))


def fields(key_id: str, model: str) -> tuple[str, str, str]:
    """The scopes of a request, but for the tenant, as the book names them."""
    return f"@key:{key_id}", f"@model:{model}", f"@key:{key_id}/model:{model}"


def packed_lease(lease: HeldLease) -> bytes:
    """A live lease's record, as its holder remembers it."""
    cost = divmod(lease.cost_pico, PICO_PER_UNIT)
    numbers = _LEASE.pack(lease.sequences, lease.reserved_tokens, *cost)
    rest = f"{lease.month}|{lease.key_id}|{lease.model}".encode()
    return b"L" + _CHARGED.pack(lease.second * 1000) + numbers + rest


def answer(
    reply: Reply, demand: Demand, scopes: Sequence[ScopeLimits], reserved_tokens: int
) -> Answer:
    """What `acquire.lua` replied. `reserved_tokens` is what is reserved in the usual case."""
    if isinstance(reply, bytes):
        return _granted(reply, scopes, reserved_tokens)
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


def _granted(packed: bytes, scopes: Sequence[ScopeLimits], reserved_tokens: int) -> Granted:
    now_ms, *numbers = map(int, _GRANTED.unpack(packed))
    second = now_ms // 1000
    reset_ms = (second + WINDOW_CELLS) * 1000 - now_ms
    uses = [
        ScopeUse(scope, running, tokens, requests, reset_ms)
        for scope, running, tokens, requests in zip(
            scopes, numbers[::8], numbers[1::8], numbers[2::8], strict=True
        )
    ]
    return Granted(reserved_tokens, second, tuple(uses), now_ms)


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

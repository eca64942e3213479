"""How the ledger's scripts are told things, and how they answer: packed numbers, little-endian.

Numbers travel as doubles, exact up to 2^53; an amount of money as two, whole units of the currency
and pico below 10^12. `lua/book.lua` has the other side.
"""

import struct
from collections.abc import Sequence

from gateway.domain.decisions import Demand, Granted, Kind, MoneyUnknown, Paused, Refused, Settled
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.ports import HeldLease

PICO_PER_UNIT = 10**12
SETTLED = {1: Settled.LIVE, 2: Settled.LAPSED, 3: Settled.REPEATED, 4: Settled.UNKNOWN}
_KINDS = {1: Kind.SEQUENCES, 2: Kind.REQUESTS, 3: Kind.TOKENS, 4: Kind.BUDGET}
_NONE = -1
_LIMITS = struct.Struct("<6d")
_USE = struct.Struct("<15d")
_DEMAND = struct.Struct("<5d")
_LEASE = struct.Struct("<6d")
_ACTUAL = struct.Struct("<3d")

Answer = Granted | Refused | Paused | MoneyUnknown


def packed_limits(scopes: Sequence[ScopeLimits]) -> bytes:
    """The limits of scopes, in their order."""
    return b"".join(
        _LIMITS.pack(
            scope.version,
            _NONE if scope.max_sequences is None else scope.max_sequences,
            _NONE if scope.tpm is None else scope.tpm,
            _NONE if scope.rpm is None else scope.rpm,
            *(
                (_NONE, 0)
                if scope.budget_pico is None
                else divmod(scope.budget_pico, PICO_PER_UNIT)
            ),
        )
        for scope in scopes
    )


def packed_demand(demand: Demand) -> bytes:
    """What a request asks."""
    cost = divmod(demand.cost_pico, PICO_PER_UNIT)
    return _DEMAND.pack(demand.sequences, demand.tokens, demand.floor_tokens, *cost)


def packed_actual(tokens: int, cost_pico: int) -> bytes:
    """What a request used."""
    return _ACTUAL.pack(tokens, *divmod(cost_pico, PICO_PER_UNIT))


def packed_lease(lease: HeldLease) -> bytes:
    """A live lease's record, as its holder remembers it."""
    cost = divmod(lease.cost_pico, PICO_PER_UNIT)
    numbers = _LEASE.pack(lease.sequences, lease.reserved_tokens, lease.second, *cost, 0)
    return b"L" + numbers + f"{lease.month}|{lease.key_id}|{lease.model}".encode()


def answer(reply: list[object], demand: Demand, scopes: Sequence[ScopeLimits]) -> Answer:
    """What `acquire.lua` replied."""
    match reply:
        case [1, int(reserved), int(second), int(now_ms), bytes(packed)]:
            return Granted(reserved, second, uses(packed, scopes), now_ms)
        case [2, int(until_ms), int(now_ms)]:
            return Paused(until_ms, now_ms)
        case [3]:
            return MoneyUnknown(demand.month)
        case [0, int(kind), int(index), int(limit), int(used), int(need), int(wait), bytes(packed)]:
            seen = uses(packed, scopes)
            use = seen[index - 1]
            if _KINDS[kind] is Kind.BUDGET:
                limit, need = use.limits.budget_pico or 0, demand.cost_pico
                used = (use.spent_pico or 0) + (use.reserved_pico or 0)
            wait_ms = None if wait < 0 else wait
            return Refused(_KINDS[kind], use.limits, limit, used, need, wait_ms, seen)
    raise ValueError("a reply of acquire.lua that no release of it gives")


def uses(packed: bytes, scopes: Sequence[ScopeLimits]) -> tuple[ScopeUse, ...]:
    """The use of scopes, in their order."""
    return tuple(
        _use(scope.scope, _USE.unpack_from(packed, index * _USE.size))
        for index, scope in enumerate(scopes)
    )


def _use(scope: str, numbers: tuple[float, ...]) -> ScopeUse:
    version, sequences_max, tpm, rpm, budget, budget_pico = (int(n) for n in numbers[:6])
    sequences, tokens, requests, reset_ms, known, *money = (int(n) for n in numbers[6:])
    limits = ScopeLimits(
        scope,
        version,
        None if sequences_max < 0 else sequences_max,
        None if tpm < 0 else tpm,
        None if rpm < 0 else rpm,
        None if budget < 0 else budget * PICO_PER_UNIT + budget_pico,
    )
    return ScopeUse(
        limits,
        sequences,
        tokens,
        requests,
        reset_ms,
        money[0] * PICO_PER_UNIT + money[1] if known else None,
        money[2] * PICO_PER_UNIT + money[3] if known else None,
    )

"""Admission: the decision that grants a lease and a reservation, or refuses (INV-1 to INV-4).

This is the specification, with `admission_state.py`, `admission_leases.py`, `admission_money.py`
and `window.py`. `gateway/adapters/lua/*.lua` executes the same rules atomically in Redis, and a
property test drives both with the same operations and compares every reply.

One decision covers four scopes of one tenant: the tenant, the API key, and each narrowed to the
model. Use is counted in all four whether or not they are limited, so that a limit set later finds
the use of the window it is set in. A refusal consumes nothing.

A demand of `s` sequences, `t` tokens and `c` pico is granted where in every scope

- `running + s <= max_sequences`,
- `requests + 1 <= rpm` and `tokens + min(t, every tpm) <= tpm` over the window,
- `spent + reserved + c <= budget` in the demand's month,

a limit that is None left out. Checked in this order, the widest scope first; the first that fails
is the one that a refusal names. Before them come what exceeds a limit itself (`retry_after_ms` is
None) and the pause after the store was lost.
"""

from dataclasses import replace

from gateway.domain import admission_money as money
from gateway.domain.admission_checks import (
    SEQUENCES_RETRY_MS,
    has_room_at_sight,
    may_wait_for_the_clock,
    never,
    not_now,
    paused,
    reservation,
    too_dear,
    too_late,
)
from gateway.domain.admission_leases import (
    begin_month,
    finish_month,
    renew,
    settle,
    unsettled_or_recent,
)
from gateway.domain.admission_money import Money, Month
from gateway.domain.admission_state import (
    LAPSED_KEEP_MS,
    SCOPE_KEEP_S,
    SETTLED_KEEP_MS,
    Beginning,
    Lease,
    ScopeBook,
    TenantState,
    Unborn,
    begin,
    in_force,
    reap,
    set_right,
    uses_of,
)
from gateway.domain.decisions import (
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

__all__ = [
    "LAPSED_KEEP_MS",
    "SCOPE_KEEP_S",
    "SEQUENCES_RETRY_MS",
    "SETTLED_KEEP_MS",
    "Beginning",
    "Demand",
    "Granted",
    "Kind",
    "Lease",
    "Money",
    "MoneyUnknown",
    "Month",
    "MonthBegun",
    "Paused",
    "Refused",
    "Renewed",
    "ScopeBook",
    "Settled",
    "TenantState",
    "Unborn",
    "acquire",
    "begin",
    "begin_month",
    "finish_month",
    "has_room_at_sight",
    "observe",
    "renew",
    "set_right",
    "settle",
    "unsettled_or_recent",
]


def acquire(
    state: TenantState,
    demand: Demand,
    scopes: tuple[ScopeLimits, ...],
    *,
    now_ms: int,
    ttl_ms: int,
) -> Granted | Refused | Paused | MoneyUnknown:
    """Grant lease and reservation in all scopes, or nothing. Idempotent by request id.

    Raises Unborn, as every operation does.
    """
    reap(state, now_ms)
    limits = tuple(in_force(state, offered, now_ms) for offered in scopes)
    windows = [state.scopes[scope.scope].window for scope in limits]
    second = max(window.advance(now_ms) for window in windows)
    held = state.leases.get(demand.request_id)
    if held is not None:
        uses = uses_of(state, limits, demand.month, now_ms)
        return Granted(held.tokens, held.second, uses, now_ms)
    refusal = (
        too_late(state, demand, limits)
        or never(demand, limits)
        or paused(state, limits, now_ms)
        or not_now(state, demand, limits, windows, now_ms)
        or too_dear(state, demand, limits)
    )
    if may_wait_for_the_clock(refusal):
        set_right(state, now_ms=now_ms, ttl_ms=ttl_ms)
        refusal = paused(state, limits, now_ms) or refusal
    if isinstance(refusal, Refused):
        return replace(refusal, uses=uses_of(state, limits, demand.month, now_ms))
    if refusal is not None:
        return refusal
    tokens = reservation(demand, limits)
    lease = Lease(
        sequences=demand.sequences,
        tokens=tokens,
        second=second,
        scopes=tuple(scope.scope for scope in limits),
        expires_at_ms=now_ms + ttl_ms,
        cost_pico=demand.cost_pico,
        month=demand.month,
    )
    state.leases[demand.request_id] = lease
    money.reserve(state.months, lease.month, lease.scopes, lease.cost_pico)
    for scope in limits:
        state.scopes[scope.scope].touch(now_ms)
        state.scopes[scope.scope].window.charge(second, tokens=tokens, requests=1)
    return Granted(tokens, second, uses_of(state, limits, demand.month, now_ms), now_ms)


def observe(
    state: TenantState, scopes: tuple[ScopeLimits, ...], *, now_ms: int, month: str = ""
) -> tuple[ScopeUse, ...]:
    """Limits in force and use now; the money where `month` is known."""
    reap(state, now_ms)
    limits = tuple(in_force(state, offered, now_ms) for offered in scopes)
    for scope in limits:
        state.scopes[scope.scope].window.advance(now_ms)
    return uses_of(state, limits, month, now_ms)

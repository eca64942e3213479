"""Why a demand is not granted: the five checks, in the order in which `acquire` makes them."""

from gateway.domain.admission_state import TenantState, Unborn
from gateway.domain.decisions import Demand, Kind, MoneyUnknown, Paused, Refused
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.window import Window

SEQUENCES_RETRY_MS = 1_000
"""`retry-after` where a sequence must end first: nobody knows when one does."""


def reservation(demand: Demand, limits: tuple[ScopeLimits, ...]) -> int:
    """Tokens to reserve: the demand, an expectation above a limit cut down to that limit."""
    return min([demand.tokens, *(s.tpm for s in limits if s.tpm is not None)])


def too_late(state: TenantState, demand: Demand, limits: tuple[ScopeLimits, ...]) -> Refused | None:
    """The refusal of a request whose holder gave it up, or has been away for too long."""
    if demand.request_id in state.settled or demand.request_id in state.lapsed:
        return Refused(Kind.REQUESTS, limits[0], 0, 0, 1, SEQUENCES_RETRY_MS)
    return None


def never(demand: Demand, limits: tuple[ScopeLimits, ...]) -> Refused | None:
    """The refusal of what exceeds a limit itself, for which waiting cannot help."""
    for scope in limits:
        for kind, limit, need in (
            (Kind.SEQUENCES, scope.max_sequences, demand.sequences),
            (Kind.REQUESTS, scope.rpm, 1),
            (Kind.TOKENS, scope.tpm, demand.floor_tokens),
        ):
            if limit is not None and need > limit:
                return Refused(kind, scope, limit, 0, need, None)
    return None


def paused(state: TenantState, limits: tuple[ScopeLimits, ...], now_ms: int) -> Paused | None:
    """The pause after the store was lost, as long as a limit needs what is not known yet."""
    if state.beginning is None:
        raise Unborn
    until_ms = 0
    if any(scope.max_sequences is not None for scope in limits):
        until_ms = state.beginning.sequences_ms
    if any(scope.tpm is not None or scope.rpm is not None for scope in limits):
        until_ms = max(until_ms, state.beginning.tokens_ms)
    return Paused(until_ms, now_ms) if until_ms > now_ms else None


def not_now(
    state: TenantState,
    demand: Demand,
    limits: tuple[ScopeLimits, ...],
    windows: list[Window],
    now_ms: int,
) -> Refused | None:
    """The refusal of what has no room at the moment: sequences, then requests, then tokens."""
    for scope in limits:
        running = state.running(scope.scope)
        limit = scope.max_sequences
        if limit is not None and running + demand.sequences > limit:
            return Refused(
                Kind.SEQUENCES, scope, limit, running, demand.sequences, SEQUENCES_RETRY_MS
            )
    for scope, window in zip(limits, windows, strict=True):
        if scope.rpm is not None and window.requests + 1 > scope.rpm:
            wait_ms = window.wait_ms(now_ms, excess_requests=window.requests + 1 - scope.rpm)
            return Refused(Kind.REQUESTS, scope, scope.rpm, window.requests, 1, wait_ms)
    need = reservation(demand, limits)
    for scope, window in zip(limits, windows, strict=True):
        if scope.tpm is not None and window.tokens + need > scope.tpm:
            wait_ms = window.wait_ms(now_ms, excess_tokens=window.tokens + need - scope.tpm)
            return Refused(Kind.TOKENS, scope, scope.tpm, window.tokens, need, wait_ms)
    return None


def too_dear(
    state: TenantState, demand: Demand, limits: tuple[ScopeLimits, ...]
) -> Refused | MoneyUnknown | None:
    """The refusal of what a month's budget leaves no room for, known only with the month."""
    month = state.months.get(demand.month)
    for scope in limits:
        if scope.budget_pico is None:
            continue
        if month is None or not month.known:
            return MoneyUnknown(demand.month)
        of_scope = month.of(scope.scope)
        used = of_scope.spent_pico + of_scope.reserved_pico
        if used + demand.cost_pico > scope.budget_pico:
            return Refused(Kind.BUDGET, scope, scope.budget_pico, used, demand.cost_pico, None)
    return None


def may_wait_for_the_clock(refusal: Refused | Paused | MoneyUnknown | None) -> bool:
    """Whether a lease or a pause stands in the way, so that a clock that has stepped back might
    keep it there."""
    if not isinstance(refusal, Refused):
        return isinstance(refusal, Paused)
    if refusal.kind is Kind.SEQUENCES:
        return refusal.retry_after_ms is not None
    return refusal.kind is Kind.BUDGET


def has_room_at_sight(uses: tuple[ScopeUse, ...], demand: Demand) -> bool:
    """Whether scopes seen a moment ago had room for a demand, its money left out. It decides
    nothing: `acquire` does, and says why not and for how long."""
    return all(
        limit is None or used + need <= limit
        for use in uses
        for limit, used, need in (
            (use.limits.max_sequences, use.sequences, demand.sequences),
            (use.limits.rpm, use.requests, 1),
            (use.limits.tpm, use.tokens, demand.tokens),
        )
    )

"""Admission: the decision that grants a lease and a reservation, or refuses (INV-1 to INV-4).

This is the specification. `gateway/adapters/lua/*.lua` executes the same rules atomically in Redis,
and a property test drives both with the same operations and compares every reply.

One decision covers four scopes of one tenant: the tenant, the API key, and each narrowed to the
model. Use is counted in all four whether or not they are limited, so that a limit set later finds
the use of the window it is set in. A refusal consumes nothing.

A lease holds sequences until it is settled, or until nobody renewed it for its time to live: then
it *lapses*, its sequences are free, its reservation stays charged. A late renewal takes it up
again; a late settlement still settles it, once.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.window import Window

LAPSED_KEEP_MS = 3_600_000
"""A lapsed lease is remembered for so long, for its late settlement."""
SETTLED_KEEP_MS = 60_000
"""A settlement is remembered for so long, so that what was delayed on the way (a repeated
settlement, a renewal, an acquisition given up on) finds that all is over."""
SEQUENCES_RETRY_MS = 1_000
"""`retry-after` where a sequence must end first: nobody knows when one does."""


class Kind(StrEnum):
    """What a limit limits; OpenAI's `error.type` of a refusal."""

    SEQUENCES = "sequences"
    REQUESTS = "requests"
    TOKENS = "tokens"
    BUDGET = "insufficient_quota"
    """A month's budget; limit, used and need are then in pico-units of the currency."""


@dataclass(frozen=True)
class Demand:
    """What a request asks of admission.

    `tokens` is prompt + expected output. `floor_tokens` is the least that it must reserve: equal to
    `tokens` where the client set a maximum; only prompt + 1 where it did not, since then an
    expectation above the limit itself is cut down to the limit.
    """

    request_id: str
    sequences: int
    tokens: int
    floor_tokens: int
    cost_pico: int = 0
    """The most that the request may cost, in pico-units of the tenant's currency."""
    month: str = ""
    """The billing month that it counts in, as `2026-11`; empty where it counts in none."""


@dataclass(frozen=True)
class Granted:
    """The lease and the reservation are held. `second` is the window cell that was charged."""

    reserved_tokens: int
    second: int
    uses: tuple[ScopeUse, ...]
    now_ms: int = 0
    """The store's time of the decision."""


@dataclass(frozen=True)
class Refused:
    """Nothing is held. `retry_after_ms` is None where waiting cannot help: the demand exceeds the
    limit itself."""

    kind: Kind
    limits: ScopeLimits
    limit: int
    used: int
    need: int
    retry_after_ms: int | None
    uses: tuple[ScopeUse, ...] = ()


@dataclass(frozen=True)
class Paused:
    """Nothing is held: the store was found empty a moment ago, and what ran then is not known.
    From `until_ms` (the store's time) it is."""

    until_ms: int
    now_ms: int


@dataclass(frozen=True)
class MoneyUnknown:
    """Nothing is held: a budget is in force, and what the month has cost is not in the store."""

    month: str


@dataclass(frozen=True)
class Renewed:
    """What a renewal found, in leases: still held, lapsed and held again, unknown and held again,
    settled long since. `now_ms` is the store's time."""

    renewed: int = 0
    resumed: int = 0
    recreated: int = 0
    over: int = 0
    now_ms: int = 0


@dataclass(frozen=True)
class MonthBegun:
    """A month is tracked since `at_ms` (the store's time). `held` are the requests whose money the
    store accounts for itself: what they cost must not be in the sums given to `finish_month`."""

    at_ms: int
    held: frozenset[str]


class Settled(StrEnum):
    """What a settlement found."""

    LIVE = "live"
    LAPSED = "lapsed"
    REPEATED = "repeated"
    """Already settled: nothing changed."""
    UNKNOWN = "unknown"
    """No such lease: the store lost it, or it lapsed long ago. Nothing changed."""


@dataclass
class Lease:
    """What one admitted request holds."""

    sequences: int
    tokens: int
    second: int
    scopes: tuple[str, ...]
    expires_at_ms: int
    cost_pico: int = 0
    month: str = ""


@dataclass
class TenantState:
    """All that admission knows of one tenant."""

    leases: dict[str, Lease] = field(default_factory=dict)
    lapsed: dict[str, Lease] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    limits: dict[str, ScopeLimits] = field(default_factory=dict)

    def running(self, scope: str) -> int:
        """Sequences held in a scope."""
        return sum(lease.sequences for lease in self.leases.values() if scope in lease.scopes)


def reap(state: TenantState, now_ms: int) -> list[str]:
    """Let leases lapse whose holder has not renewed them, and forget what is long over."""
    gone = [rid for rid, lease in state.leases.items() if lease.expires_at_ms <= now_ms]
    for rid in gone:
        lease = state.leases.pop(rid)
        lease.expires_at_ms = now_ms + LAPSED_KEEP_MS
        state.lapsed[rid] = lease
    state.lapsed = {r: le for r, le in state.lapsed.items() if le.expires_at_ms > now_ms}
    state.settled = {r: until for r, until in state.settled.items() if until > now_ms}
    return sorted(gone)


def in_force(state: TenantState, offered: ScopeLimits) -> ScopeLimits:
    """The newer of the limits that the caller and the store know, kept for the next caller."""
    known = state.limits.get(offered.scope)
    if known is not None and known.version > offered.version:
        return known
    state.limits[offered.scope] = offered
    return offered


def acquire(
    state: TenantState,
    demand: Demand,
    scopes: tuple[ScopeLimits, ...],
    *,
    now_ms: int,
    ttl_ms: int,
) -> Granted | Refused | Paused | MoneyUnknown:
    """Grant lease and reservation in all scopes, or nothing. Idempotent by request id."""
    reap(state, now_ms)
    limits = tuple(in_force(state, offered) for offered in scopes)
    windows = [state.windows.setdefault(scope.scope, Window()) for scope in limits]
    seconds = [window.advance(now_ms) for window in windows]
    held = state.leases.get(demand.request_id)
    if held is not None:
        uses = _uses(state, limits, now_ms)
        return Granted(held.tokens, held.second, uses, now_ms)
    if demand.request_id in state.settled or demand.request_id in state.lapsed:
        # Its holder gave it up or has been away too long: whoever repeats it comes too late.
        refused: Refused | None = Refused(Kind.REQUESTS, limits[0], 0, 0, 1, SEQUENCES_RETRY_MS)
    else:
        refused = _never(demand, limits) or _not_now(state, demand, limits, windows, now_ms)
    if refused is not None:
        return replace(refused, uses=_uses(state, limits, now_ms))
    tokens = reservation(demand, limits)
    second = max(seconds)
    for window in windows:
        window.charge(second, tokens=tokens, requests=1)
    state.leases[demand.request_id] = Lease(
        sequences=demand.sequences,
        tokens=tokens,
        second=second,
        scopes=tuple(scope.scope for scope in limits),
        expires_at_ms=now_ms + ttl_ms,
    )
    return Granted(tokens, second, _uses(state, limits, now_ms), now_ms)


def reservation(demand: Demand, limits: tuple[ScopeLimits, ...]) -> int:
    """Tokens to reserve: the demand, an expectation above a limit cut down to that limit."""
    return min([demand.tokens, *(s.tpm for s in limits if s.tpm is not None)])


def _never(demand: Demand, limits: tuple[ScopeLimits, ...]) -> Refused | None:
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


def _not_now(
    state: TenantState,
    demand: Demand,
    limits: tuple[ScopeLimits, ...],
    windows: list[Window],
    now_ms: int,
) -> Refused | None:
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


def _uses(state: TenantState, limits: tuple[ScopeLimits, ...], now_ms: int) -> tuple[ScopeUse, ...]:
    uses = []
    for scope in limits:
        window = state.windows[scope.scope]
        newest_s = max(window.cells, default=None)
        reset_ms = 0 if newest_s is None else max(0, (newest_s + 61) * 1000 - now_ms)
        uses.append(
            ScopeUse(scope, state.running(scope.scope), window.tokens, window.requests, reset_ms)
        )
    return tuple(uses)


def refused_at_sight(
    uses: tuple[ScopeUse, ...], *, sequences: int, fewest_tokens: int
) -> Refused | None:
    """Whether scopes seen a moment ago have no room for a request that uses at least so much. Only
    refuses; what passes is decided by `acquire`."""
    for use in uses:
        limits = use.limits
        for kind, limit, used, need, wait_ms in (
            (Kind.SEQUENCES, limits.max_sequences, use.sequences, sequences, SEQUENCES_RETRY_MS),
            (Kind.REQUESTS, limits.rpm, use.requests, 1, use.reset_ms),
            (Kind.TOKENS, limits.tpm, use.tokens, fewest_tokens, use.reset_ms),
        ):
            if limit is not None and used + need > limit:
                never = need > limit
                return Refused(
                    kind, limits, limit, used, need, None if never else max(1, wait_ms), uses
                )
    return None


def observe(
    state: TenantState, scopes: tuple[ScopeLimits, ...], *, now_ms: int
) -> tuple[ScopeUse, ...]:
    """Limits in force and use now."""
    reap(state, now_ms)
    limits = tuple(in_force(state, offered) for offered in scopes)
    for scope in limits:
        state.windows.setdefault(scope.scope, Window()).advance(now_ms)
    return _uses(state, limits, now_ms)


def settle(
    state: TenantState, request_id: str, *, actual_tokens: int, ran: bool, now_ms: int
) -> Settled:
    """End a lease: sequences free, the actual tokens in place of the reserved ones.

    What was reserved too much goes back to the cell that was charged; what was too little is
    charged to the present second, a debt that blocks what follows. `ran` is False where nothing
    was sent to an engine: then the request itself is not counted either.
    """
    reap(state, now_ms)
    if request_id in state.settled:
        return Settled.REPEATED
    state.settled[request_id] = now_ms + SETTLED_KEEP_MS
    found = Settled.LIVE
    lease = state.leases.pop(request_id, None)
    if lease is None:
        found = Settled.LAPSED
        lease = state.lapsed.pop(request_id, None)
    if lease is None:
        return Settled.UNKNOWN
    for scope in lease.scopes:
        window = state.windows.setdefault(scope, Window())
        now_s = window.advance(now_ms)
        requests = 0 if ran else 1
        if actual_tokens <= lease.tokens:
            window.refund(lease.second, tokens=lease.tokens - actual_tokens, requests=requests)
        else:
            window.refund(lease.second, tokens=0, requests=requests)
            window.charge(now_s, tokens=actual_tokens - lease.tokens, requests=0)
    return found


def renew(state: TenantState, held: dict[str, Lease], *, now_ms: int, ttl_ms: int) -> Renewed:
    """Prolong the leases that a gateway holds; take up again what lapsed or was lost.

    What was lost took its charge with it: nothing is refunded later, since a cell of that second
    bears only what others charged. The reply counts `renewed`, `resumed` (had lapsed), `recreated`
    (was unknown) and `over` (is settled, nothing was done).
    """
    reap(state, now_ms)
    counts = {"renewed": 0, "resumed": 0, "recreated": 0, "over": 0}
    for rid, lease in held.items():
        if rid in state.settled:
            counts["over"] += 1
            continue
        if rid in state.leases:
            counts["renewed"] += 1
            state.leases[rid].expires_at_ms = now_ms + ttl_ms
            continue
        known = state.lapsed.pop(rid, None)
        counts["recreated" if known is None else "resumed"] += 1
        state.leases[rid] = known or replace(lease, second=0)
        state.leases[rid].expires_at_ms = now_ms + ttl_ms
    return Renewed(**counts, now_ms=now_ms)

"""What admission keeps of one tenant, and what time alone changes in it.

A lease holds sequences until it is settled, or until nobody renewed it for its time to live: then
it *lapses*. Its sequences and its reserved money are free; its tokens stay charged. The holder may
have been cut off from the store and may have run another request under the lease until the last
moment, so a reservation that was still counted when its lease ended is *charged anew*: it moves
from the cell that it was charged in to the present one and counts 60 s from there (INV-3).
"""

from dataclasses import dataclass, field

from gateway.domain.admission_money import Month, hold_nothing, release
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.window import WINDOW_CELLS, Window

LAPSED_KEEP_MS = 3_600_000
"""A lapsed lease is remembered for so long, for its late settlement."""
SETTLED_KEEP_MS = 60_000
"""A settlement is remembered for so long, so that what was delayed on the way (a repeated
settlement, a renewal, an acquisition given up on) finds that all is over."""
SETTLED_GRID_MS = 4_000
"""Settlements are forgotten together, at multiples of this: the store then forgets in batches."""
SCOPE_KEEP_S = 3_600
"""A scope that holds nothing is forgotten, its limits too, so long after its last change."""
STEP_MS = 60_000
"""A clock that is behind what it was by more than this has stepped back; less is waited out."""
UNKNOWN_VERSION = -1
"""Of the limits of a scope that nobody has offered any for: whatever is offered is newer."""


@dataclass
class Lease:
    """What one admitted request holds. `second` is the cell of the windows that its reservation is
    charged in; 0 where it is charged in none."""

    sequences: int
    tokens: int
    second: int
    scopes: tuple[str, ...]
    expires_at_ms: int
    cost_pico: int = 0
    month: str = ""
    carried: bool = False
    """Said by a holder: a request ran under it while the store could not be reached."""


@dataclass(frozen=True)
class Beginning:
    """From when what the store says is all there is. What ran before the store was lost is not
    known to it: sequences for one lease time, tokens and requests for a window."""

    sequences_ms: int = 0
    tokens_ms: int = 0


@dataclass(frozen=True)
class Stepped:
    """What was dated by a clock that has stepped back since: it had reached `reached_ms`, or more,
    and the pause began as it was. The clock may return to that time."""

    reached_ms: int
    ttl_ms: int
    beginning: Beginning


@dataclass
class ScopeBook:
    """Limits in force and window of one scope. `seen_s` is when either last changed."""

    limits: ScopeLimits
    window: Window
    seen_s: int

    def touch(self, now_ms: int) -> None:
        """Note a change."""
        self.seen_s = max(self.seen_s, now_ms // 1000)


@dataclass
class TenantState:
    """All that admission knows of one tenant. `beginning` is None in a store that was found empty:
    nothing is decided there before `begin`."""

    leases: dict[str, Lease] = field(default_factory=dict)
    lapsed: dict[str, Lease] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)
    scopes: dict[str, ScopeBook] = field(default_factory=dict)
    months: dict[str, Month] = field(default_factory=dict)
    beginning: Beginning | None = field(default_factory=Beginning)
    stepped: Stepped | None = None

    def running(self, scope: str) -> int:
        """Sequences held in a scope."""
        return sum(lease.sequences for lease in self.leases.values() if scope in lease.scopes)


class Unborn(Exception):
    """The store knows nothing of this tenant, not even since when: ask, then `begin`."""


def begin(state: TenantState, beginning: Beginning) -> None:
    """Set since when this tenant's part of the store is complete; the first to say so is heard.

    A part that nobody used for hours goes away, all but its money; no lease outlives that.
    Where Redis has lost but some of it (a book without what ends with it), which a state here
    cannot be, `begin.lua` begins it as lost now, if that is later.
    """
    if state.beginning is None:
        state.beginning = beginning
        hold_nothing(state.months)


def reap(state: TenantState, now_ms: int) -> None:
    """Let leases lapse whose holder has not renewed them, and forget what is long over.

    Raises Unborn. Every operation begins with it. Where the clock is back at a time that it had
    stepped back from (see `set_right`), leases that it jumped over are kept for one lease time.
    """
    if state.beginning is None:
        raise Unborn
    returned = state.stepped
    if returned is not None and returned.reached_ms > now_ms:
        returned = None
    gone = [
        (le.expires_at_ms, rid) for rid, le in state.leases.items() if le.expires_at_ms <= now_ms
    ]
    for expired_ms, rid in sorted(gone):
        lease = state.leases.pop(rid)
        if (lease.second + WINDOW_CELLS) * 1000 >= expired_ms:
            charge_anew(state, lease, now_ms)
        if returned is not None:
            lease.expires_at_ms = now_ms + returned.ttl_ms
            state.leases[rid] = lease
            continue
        for scope in lease.scopes:
            book_of(state, scope, now_ms).touch(now_ms)
        release(state.months, lease.month, lease.scopes, lease.cost_pico)
        lease.expires_at_ms = now_ms + LAPSED_KEEP_MS
        state.lapsed[rid] = lease
    if returned is not None:
        state.beginning, state.stepped = later(state.beginning, returned.beginning), None
    state.lapsed = {r: le for r, le in state.lapsed.items() if le.expires_at_ms > now_ms}
    state.settled = {r: until for r, until in state.settled.items() if until > now_ms}
    state.scopes = {
        name: book
        for name, book in state.scopes.items()
        if book.seen_s > now_ms // 1000 - SCOPE_KEEP_S or state.running(name)
    }


def set_right(state: TenantState, *, now_ms: int, ttl_ms: int) -> None:
    """After a step back of the clock, let no lease last longer than one lease time from now, nor a
    pause longer than one that begins now. Nothing where it did not step back by STEP_MS.

    A holder that lives renews within that time, by the new clock. The step may have been a mistake;
    for that `stepped` keeps what was.
    """
    if state.beginning is None:
        raise Unborn
    window_ms, begun = WINDOW_CELLS * 1000, state.beginning
    reached_ms = max(begun.sequences_ms - ttl_ms, begun.tokens_ms - window_ms)
    for lease in state.leases.values():
        reached_ms = max(reached_ms, lease.expires_at_ms - ttl_ms)
    if reached_ms <= now_ms + STEP_MS:
        return
    before = state.stepped or Stepped(0, ttl_ms, begun)
    reached_ms = max(reached_ms, before.reached_ms)
    state.stepped = Stepped(reached_ms, ttl_ms, later(begun, before.beginning))
    state.beginning = Beginning(
        min(begun.sequences_ms, now_ms + ttl_ms), min(begun.tokens_ms, now_ms + window_ms)
    )
    for lease in state.leases.values():
        lease.expires_at_ms = min(lease.expires_at_ms, now_ms + ttl_ms)


def later(one: Beginning, other: Beginning) -> Beginning:
    """The later of each."""
    return Beginning(max(one.sequences_ms, other.sequences_ms), max(one.tokens_ms, other.tokens_ms))


def book_of(state: TenantState, scope: str, now_ms: int) -> ScopeBook:
    """A scope's book; a new one where there is none."""
    if scope not in state.scopes:
        limits = ScopeLimits(scope, UNKNOWN_VERSION, None, None, None)
        state.scopes[scope] = ScopeBook(limits, Window(), now_ms // 1000)
    return state.scopes[scope]


def charge_anew(state: TenantState, lease: Lease, now_ms: int) -> None:
    """Charge a lease's reservation and its request to the present second instead of the one that
    they were charged to (where that one is gone already, beside it)."""
    books = [book_of(state, scope, now_ms) for scope in lease.scopes]
    second = max(book.window.advance(now_ms) for book in books)
    for book in books:
        book.touch(now_ms)
        book.window.refund(lease.second, tokens=lease.tokens, requests=1)
        book.window.charge(second, tokens=lease.tokens, requests=1)
    lease.second = second


def in_force(state: TenantState, offered: ScopeLimits, now_ms: int) -> ScopeLimits:
    """The newer of the limits that the caller and the store know, kept for the next caller."""
    book = book_of(state, offered.scope, now_ms)
    if book.limits.version <= offered.version and book.limits != offered:
        book.limits = offered
        book.touch(now_ms)
    return book.limits


def uses_of(
    state: TenantState, limits: tuple[ScopeLimits, ...], month: str, now_ms: int
) -> tuple[ScopeUse, ...]:
    """What is used of each scope. Its windows must have been advanced."""
    return tuple(_use_of(state, scope, month, now_ms) for scope in limits)


def _use_of(state: TenantState, limits: ScopeLimits, month: str, now_ms: int) -> ScopeUse:
    window = state.scopes[limits.scope].window
    newest_s = max(window.cells, default=None)
    tracked = state.months.get(month)
    money = tracked.of(limits.scope) if tracked is not None and tracked.known else None
    return ScopeUse(
        limits=limits,
        sequences=state.running(limits.scope),
        tokens=window.tokens,
        requests=window.requests,
        reset_ms=0 if newest_s is None else max(0, (newest_s + WINDOW_CELLS) * 1000 - now_ms),
        spent_pico=None if money is None else money.spent_pico,
        reserved_pico=None if money is None else money.reserved_pico,
    )

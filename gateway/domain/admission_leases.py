"""What happens to a lease after it was granted: settled, renewed; and a month begun around it."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.domain import admission_money as money
from gateway.domain.admission_state import (
    SETTLED_GRID_MS,
    SETTLED_KEEP_MS,
    Lease,
    TenantState,
    book_of,
    charge_anew,
    reap,
    set_right,
)
from gateway.domain.decisions import MonthBegun, Renewed, Settled
from gateway.domain.window import WINDOW_CELLS


def settle(
    state: TenantState,
    request_id: str,
    *,
    actual_tokens: int,
    ran: bool,
    now_ms: int,
    actual_cost_pico: int = 0,
    held: Lease | None = None,
) -> Settled:
    """End a lease: sequences free, the actual tokens and money in place of the reserved ones.

    What was reserved too much goes back to the cell that was charged; what was too little is
    charged to the present second, a debt that blocks what follows. `ran` is False where nothing
    was sent to an engine: then the request itself is not counted either.

    `held` is the lease as its holder remembers it. Where that is `carried`, the reservation is
    charged anew before anything else; and where the store has lost it altogether, what was used is
    charged to the present second. The money of a lost lease counts only while its month is being
    summed up: a known month has it already, where this is a repetition come late.
    """
    reap(state, now_ms)
    if request_id in state.settled:
        return Settled.REPEATED
    state.settled[request_id] = _forgotten_at(now_ms)
    found = Settled.LIVE
    lease = state.leases.pop(request_id, None)
    if lease is None:
        found = Settled.LAPSED
        lease = state.lapsed.pop(request_id, None)
    if lease is None:
        if held is not None:
            lost = replace(held, carried=held.carried and ran)
            _settle_lost(state, request_id, lost, (actual_tokens, actual_cost_pico), now_ms)
        return Settled.UNKNOWN
    if held is not None and held.carried:
        charge_anew(state, lease, now_ms)
    for scope in lease.scopes:
        book = book_of(state, scope, now_ms)
        book.touch(now_ms)
        second = book.window.advance(now_ms)
        excess = max(0, actual_tokens - lease.tokens)
        unused = max(0, lease.tokens - actual_tokens)
        book.window.refund(lease.second, tokens=unused, requests=0 if ran else 1)
        if excess:
            book.window.charge(second, tokens=excess, requests=0)
    if found is Settled.LIVE:
        money.release(state.months, lease.month, lease.scopes, lease.cost_pico)
    month = state.months.get(lease.month)
    if month is not None:
        money.spend(month, lease.scopes, actual_cost_pico, request_id, now_ms)
    return found


def _forgotten_at(now_ms: int) -> int:
    return -(-(now_ms + SETTLED_KEEP_MS) // SETTLED_GRID_MS) * SETTLED_GRID_MS


def _settle_lost(
    state: TenantState,
    request_id: str,
    held: Lease,
    actual: tuple[int, int],
    now_ms: int,
) -> None:
    """Account for what a request used, in tokens and pico, whose lease the store does not know."""
    tokens, cost_pico = actual
    if held.carried:
        charge_anew(state, replace(held, tokens=tokens, second=0), now_ms)
    month = state.months.get(held.month)
    if month is not None and month.is_open(now_ms):
        money.spend(month, held.scopes, cost_pico, request_id, now_ms)


def renew(state: TenantState, held: dict[str, Lease], *, now_ms: int, ttl_ms: int) -> Renewed:
    """Prolong the leases that a gateway holds; take up again what lapsed or was lost.

    What is `carried` is charged anew. What was lost is charged again, in the present second, as
    long as the second that its holder remembers would still be counted; else it is charged nowhere
    (`second` 0), and nothing is refunded for it later.
    """
    reap(state, now_ms)
    set_right(state, now_ms=now_ms, ttl_ms=ttl_ms)
    counts = {"renewed": 0, "resumed": 0, "recreated": 0, "over": 0}
    for rid, asked in held.items():
        if rid in state.settled:
            counts["over"] += 1
            continue
        lease, is_due = state.leases.get(rid), asked.carried
        if lease is not None:
            counts["renewed"] += 1
        else:
            lease = state.lapsed.pop(rid, None)
            counts["recreated" if lease is None else "resumed"] += 1
            if lease is None:
                is_due = is_due or (asked.second + WINDOW_CELLS) * 1000 > now_ms
                lease = replace(asked, second=0, carried=False)
            state.leases[rid] = lease
            money.reserve(state.months, lease.month, lease.scopes, lease.cost_pico)
            for scope in lease.scopes:
                book_of(state, scope, now_ms).touch(now_ms)
        if is_due:
            charge_anew(state, lease, now_ms)
        lease.expires_at_ms = now_ms + ttl_ms
    return Renewed(**counts, now_ms=now_ms)


def begin_month(
    state: TenantState, month: str, *, now_ms: int, again: bool = False
) -> MonthBegun | None:
    """Track a month's money from nothing but what live leases have reserved; not known yet. A lease
    held in the month as it was in another time zone counts in this one from now on.

    None where it was begun less than 3 s ago, but for `again`.
    """
    reap(state, now_ms)
    if money.begin(state.months, month, now_ms, again=again) is None:
        return None
    for lease in (*state.leases.values(), *state.lapsed.values()):
        if money.is_replaced_by(lease.month, month):
            lease.month = month
    for lease in state.leases.values():
        if lease.month == month:
            money.reserve(state.months, month, lease.scopes, lease.cost_pico)
    return MonthBegun(now_ms, frozenset(state.leases) | frozenset(state.lapsed))


def unsettled_or_recent(state: TenantState, *, now_ms: int) -> frozenset[str]:
    """Requests whose money the store accounts for itself: held, lapsed and not settled, or settled
    since their month was begun (as long as that is not known)."""
    reap(state, now_ms)
    recent = [month.settled for month in state.months.values()]
    return frozenset(state.leases) | frozenset(state.lapsed) | frozenset().union(*recent)


def finish_month(
    state: TenantState, month: str, at_ms: int, spent: Mapping[str, int], *, now_ms: int
) -> bool:
    """Add what the month cost before, by scope; it is known from now on. False, and no change,
    where it was not begun at `at_ms`, is known already, or was begun more than ten minutes ago."""
    reap(state, now_ms)
    return money.finish(state.months, month, at_ms, spent, now_ms)

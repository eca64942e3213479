"""What a gateway may still admit while the store of leases does not answer: its own share.

A request that ended meanwhile leaves a lease behind whose settlement was never sent. The store goes
on counting that lease, its sequences until it lapses and its reservation in the window, so another
request may run in its place without anybody's limit being passed (INV-2, INV-3). Nothing else may.

Why each rule:

- *Same tenant, key and model*: only these four scopes count the lease.
- *Never sent*: a settlement that may have arrived may have freed what it held.
- *Confirmed less than one lease time ago*, by a clock that never jumps and from when the store was
  asked: later the lease may have lapsed, and others may run in its place. A hundredth less, since
  two clocks do not run alike.
- *Sequences and tokens*: no more than the lease holds and its requests have not used. Only a
  maximum that the client set bounds what a request uses; an expectation does not.
- *Its cell counts until it lapses*: the store then charges the reservation anew, to the second in
  which it lapses (a renewal or settlement that says `carried` does the same), so that what runs so
  late is counted for the 60 s from when it began, as all else is. A renewal that was sent and not
  answered may have moved the lapse by one lease time, each.
- *Requests a minute*: a request that ran has used the lease's only one; one that never ran has not,
  and it moves with the reservation.
- *Budget*: what is spent cannot be known without the store, so there is no share of it.
- *Limits were not lowered since*: they hold from when they are written, also here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.domain.admission import Demand
from gateway.domain.scopes import ScopeLimits
from gateway.domain.window import WINDOW_CELLS


@dataclass(frozen=True)
class EndedLease:
    """A lease whose request has ended, and whose settlement was never sent."""

    request_id: str
    tenant_id: str
    key_id: str
    model: str
    sequences: int
    reserved_tokens: int
    used_tokens: int
    """By all that ran under it."""
    ran: bool
    """Whether any of that was sent to an engine: then its request is used up."""
    second: int
    """The cell that the reservation was charged to; 0 where it is charged to none."""
    limits: tuple[ScopeLimits, ...]
    """In force when it was granted."""
    confirmed_ms: int
    """The store's time when it last granted or renewed the lease."""
    asked_us: int
    """When that was asked, on this process's monotonic clock."""
    unheard: int = 0
    """Renewals that were sent and not answered: any may have taken effect, at any time."""


@dataclass(frozen=True)
class Asked:
    """A request that would run in an ended one's place."""

    tenant_id: str
    key_id: str
    model: str
    demand: Demand
    is_bounded: bool
    """Whether it can use no more than its demand: the client set a maximum."""
    limits: tuple[ScopeLimits, ...]
    """Of its scopes, as this gateway knows them now."""
    is_least: bool = False
    """Whether its demand is only the least that the request may need: nobody has counted it."""

    @property
    def subject(self) -> tuple[str, str, str]:
        """Whose lease it can use: tenant, key and model."""
        return self.tenant_id, self.key_id, self.model


def lease_to_take_over(
    ended: Iterable[EndedLease], asked: Asked, *, now_us: int, ttl_ms: int
) -> EndedLease | None:
    """The ended lease that the request may run under, the smallest that holds enough; None where
    there is none. `ttl_ms` is the time to live with which the leases were confirmed."""
    fitting = [
        lease for lease in ended if may_take_over(lease, asked, now_us=now_us, ttl_ms=ttl_ms)
    ]
    return min(
        fitting,
        key=lambda lease: (lease.sequences, _left(lease), lease.request_id),
        default=None,
    )


def may_take_over(lease: EndedLease, asked: Asked, *, now_us: int, ttl_ms: int) -> bool:
    """Whether every rule allows it."""
    demand = asked.demand
    return (
        (lease.tenant_id, lease.key_id, lease.model) == (asked.tenant_id, asked.key_id, asked.model)
        and asked.is_bounded
        and demand.sequences <= lease.sequences
        and demand.tokens <= _left(lease)
        and is_held(lease, now_us=now_us, ttl_ms=ttl_ms)
        and _counts_until_it_lapses(lease, ttl_ms)
        and not any(_has_no_share(scope, lease) for scope in asked.limits)
        and not _lowered(lease.limits, asked.limits)
    )


def is_held(lease: EndedLease, *, now_us: int, ttl_ms: int) -> bool:
    """Whether the store certainly still counts the lease."""
    return now_us - lease.asked_us < ttl_ms * 990


def _left(lease: EndedLease) -> int:
    return lease.reserved_tokens - lease.used_tokens


def _counts_until_it_lapses(lease: EndedLease, ttl_ms: int) -> bool:
    lapses_ms = lease.confirmed_ms + ttl_ms * (1 + lease.unheard)
    return (lease.second + WINDOW_CELLS) * 1000 >= lapses_ms


def _has_no_share(scope: ScopeLimits, lease: EndedLease) -> bool:
    return scope.budget_pico is not None or (scope.rpm is not None and lease.ran)


def _lowered(then: tuple[ScopeLimits, ...], now: tuple[ScopeLimits, ...]) -> bool:
    """Whether any limit is narrower now than when the lease was granted."""
    pairs = [
        (getattr(old, name), getattr(new, name))
        for old, new in zip(then, now, strict=True)
        for name in ("max_sequences", "tpm", "rpm")
    ]
    return any(new is not None and (old is None or new < old) for old, new in pairs)

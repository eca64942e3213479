"""Settlements that the store has not taken: sent until it takes them, or withheld while it is away.

One that was sent and not answered may have taken effect: it is repeated, which changes nothing, and
its lease is never used again. One that was never sent may be taken back, for a request that runs in
the ended one's place (`gateway.domain.held_share`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.domain.decisions import Settled
from gateway.domain.held_share import Asked, EndedLease, lease_to_take_over
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import Clock, HeldLease, Ledger, LedgerUnavailable
from gateway.serving.store_watch import StoreState, StoreWatch
from gateway.telemetry.logs import log_failure

_SENT_AT_ONCE = 32
"""The rest keep the ledger's connections."""
_GIVE_UP_MS = 3_600_000
"""The store forgets a lapsed lease after so long: a settlement cannot change anything then."""
_log = logging.getLogger(__name__)


@dataclass
class Holding:
    """A lease as this gateway holds it, and what the store last said of it."""

    lease: HeldLease
    limits: tuple[ScopeLimits, ...]
    """In force when it was granted."""
    confirmed_ms: int
    """The store's time when it last granted or renewed it."""
    asked_us: int
    """When that was asked, on the monotonic clock."""
    unheard: int = 0
    """Renewals that were sent and not answered."""
    is_lost: bool = False
    """Whether the store may have lost it once: what it then charged again is not known."""
    ran: bool = False
    """Whether an earlier request ran under it."""


@dataclass
class Settlement:
    """What the store is to be told of an ended lease."""

    lease: HeldLease
    actual_tokens: int
    """Without what an earlier request used under the same lease."""
    ran: bool
    since_ms: int
    actual_cost_pico: int = 0
    holding: Holding | None = None
    """None where the lease was never confirmed to this process: it cannot be used again."""
    attempted: bool = False

    @property
    def ended(self) -> EndedLease | None:
        """The lease as another request may take it over; None where it may not."""
        holding, lease = self.holding, self.lease
        if self.attempted or holding is None or holding.is_lost:
            return None
        return EndedLease(
            request_id=lease.request_id,
            tenant_id=lease.tenant_id,
            key_id=lease.key_id,
            model=lease.model,
            sequences=lease.sequences,
            reserved_tokens=lease.reserved_tokens,
            used_tokens=lease.base_tokens + self.actual_tokens,
            ran=self.ran,
            second=lease.second,
            limits=holding.limits,
            confirmed_ms=holding.confirmed_ms,
            asked_us=holding.asked_us,
            unheard=holding.unheard,
        )


class Settlements:
    """All that is still to be settled, in the order in which it ended. `on_uncounted` is told the
    tenant and month of one that cost something and that the store knew nothing of: whether the
    month's spend has it depends on when that was summed up."""

    def __init__(
        self,
        ledger: Ledger,
        watch: StoreWatch,
        clock: Clock,
        *,
        ttl_ms: int,
        on_uncounted: Callable[[str, str], None] = lambda tenant_id, month: None,
    ) -> None:
        self._ledger = ledger
        self._watch = watch
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._on_uncounted = on_uncounted
        self._open: dict[str, Settlement] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def ids(self) -> frozenset[str]:
        """Requests whose settlement the store has not taken, as far as is known."""
        return frozenset(self._open)

    @property
    def withheld(self) -> int:
        """Settlements that were not sent yet."""
        return sum(not settlement.attempted for settlement in self._open.values())

    def keep(self, settlement: Settlement) -> None:
        """Remember it until the store has taken it."""
        self._open[settlement.lease.request_id] = settlement

    def share_for(self, asked: Asked) -> Settlement | None:
        """The withheld settlement whose lease the request may run under."""
        found = lease_to_take_over(
            self._ended(asked), asked, now_us=self._clock.monotonic_us(), ttl_ms=self._ttl_ms
        )
        return None if found is None else self._open[found.request_id]

    def take_back(self, settlement: Settlement) -> None:
        """Its lease is used again: it is settled when that has ended."""
        del self._open[settlement.lease.request_id]

    async def send(self, settlement: Settlement) -> bool:
        """Tell the store; whether nothing is left to tell. What it has taken is forgotten."""
        if not self._is_open(settlement):
            return True
        if self._watch.state is StoreState.AWAY:
            return False
        settlement.attempted = True
        try:
            found = await self._watch.ask(
                lambda: self._ledger.settle(
                    settlement.lease,
                    actual_tokens=settlement.actual_tokens,
                    ran=settlement.ran,
                    actual_cost_pico=settlement.actual_cost_pico,
                )
            )
        except Exception as error:  # noqa: BLE001 - a bug in one must not hold up the others
            if not isinstance(error, LedgerUnavailable):
                log_failure(_log, error, "a lease could not be settled")
            if self._clock.now_ms() - settlement.since_ms < _GIVE_UP_MS:
                return False
        else:
            if found is Settled.UNKNOWN and settlement.actual_cost_pico and settlement.lease.month:
                self._on_uncounted(settlement.lease.tenant_id, settlement.lease.month)
        self._open.pop(settlement.lease.request_id, None)
        return True

    async def send_all(self) -> None:
        """Send what is there, in order. Passes over what alone is not taken; raises
        LedgerUnavailable where the store is away."""
        waiting = list(self._open.values())
        for start in range(0, len(waiting), _SENT_AT_ONCE):
            batch = waiting[start : start + _SENT_AT_ONCE]
            taken = await asyncio.gather(*(self.send(settlement) for settlement in batch))
            if not all(taken) and not await self._watch.lives():
                raise LedgerUnavailable(TimeoutError)

    def _is_open(self, settlement: Settlement) -> bool:
        return self._open.get(settlement.lease.request_id) is settlement

    def _ended(self, asked: Asked) -> Iterator[EndedLease]:
        for settlement in self._open.values():
            lease = settlement.lease
            if (lease.tenant_id, lease.key_id, lease.model) == asked.subject:
                ended = settlement.ended
                if ended is not None:
                    yield ended

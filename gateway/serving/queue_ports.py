"""What waiting for a place needs from the outside: the store of the queues, as a protocol."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.standing import Shares
from gateway.domain.queue.tickets import Answer, Band, Message


@dataclass(frozen=True)
class Wish:
    """A ticket before the store has given it its times. Durations are from now on; `waited_ms` is
    what it waited before, where the store forgot it."""

    id: str
    tenant: str
    band: Band
    sequences: int
    need_tokens: int
    cost: int
    weight: int
    wait_ms: int
    """It does not want to wait for longer."""
    promote_after_ms: int
    waited_ms: int = 0
    taken_back: int = 0
    lot: str = ""
    """The tenant's of one lot have the same limits."""


@dataclass(frozen=True)
class Run:
    """What holds a place in this gateway, for a store that forgot it."""

    wish: Wish
    worker: str
    began: bool


@dataclass(frozen=True)
class BandUse:
    """What waits in one band of a pool."""

    requests: int
    weighted_tokens: int
    need_tokens: int
    """Prompt and output tokens that are waited for: the queue in tokens."""
    oldest_wait_ms: int
    wait_ms: int | None
    """What a request that came now would be expected to wait; None where nothing is known."""


@dataclass(frozen=True)
class PoolUse:
    """One pool as its store knows it."""

    bands: dict[Band, BandUse]
    parked: int
    rooms: tuple[WorkerRoom, ...]
    tenants_waiting: dict[str, int]
    """Requests that wait, parked ones included, of each tenant."""
    shares: Shares


class PoolQueue(Protocol):
    """The queues of all pools, shared by all gateways: `domain.queue.pool.Pool`, a step a call.

    A pool is named as the model that it serves. Every method raises LedgerUnavailable; then the
    step may or may not have been taken, and repeating it is safe.
    """

    async def enter(
        self, pool: str, wish: Wish, *, max_queued: int, is_new: bool = True
    ) -> Answer: ...

    async def renew(self, pool: str, ids: Sequence[str], *, standing: bool = True) -> list[Answer]:
        """An answer for each, in their order. Without `standing` it is cheap for many that wait:
        those are only told StillQueued."""

    async def take_up(self, pool: str, ticket_id: str) -> Answer: ...

    async def began(self, pool: str, ticket_id: str) -> bool: ...

    async def leave(self, pool: str, ticket_id: str, *, actual_cost: int | None) -> None: ...

    async def give_back(self, pool: str, ticket_id: str) -> Answer: ...

    async def park(self, pool: str, ticket_id: str, *, max_queued: int) -> Answer: ...

    async def unpark(self, pool: str, tenant: str, lot: str) -> None: ...

    async def move(self, pool: str, ticket_id: str, worker: str) -> bool: ...

    async def resume(self, pool: str, runs: Sequence[Run]) -> None: ...

    async def report(self, pool: str, rooms: Sequence[WorkerRoom], *, well_ms: int) -> None:
        """Ceilings of workers that are well now, and for so long (their `well_until_ms`, `running`
        and `tokens` are not looked at)."""

    async def tick(self, pool: str) -> None: ...

    async def observe(self, pool: str) -> PoolUse: ...

    def messages(self) -> AsyncIterator[Message]:
        """What this gateway is told, for ever. A lost connection is made again; what was told
        meanwhile is lost, and `renew` tells it again."""

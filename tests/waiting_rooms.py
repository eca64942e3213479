"""Waiting rooms of several gateways on one queue in memory, and tenants' limits to wait for."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from memory_pool_queue import MemoryStore

from gateway.domain.queue.tickets import Band
from gateway.errors import LimitReached
from gateway.serving.queue.asked import PlaceAsked, QueueSettings
from gateway.serving.queue.held import HeldPlace
from gateway.serving.queue.places import Places
from gateway.serving.queue.restoring import Workers
from gateway.serving.store_watch import StoreWatch

Reply = TypeVar("Reply")


def asked(request_id: str, **changes: Any) -> PlaceAsked:
    """An interactive request of tenant `acme` that waits for up to 10 s."""
    fields: dict[str, Any] = {
        "id": request_id,
        "pool": "m",
        "tenant": "acme",
        "key": "k1",
        "band": Band.INTERACTIVE,
        "sequences": 1,
        "need_tokens": 100,
        "cost": 150,
        "weight": 1,
        "max_queued": 1_000,
        "wait_ms": 10_000,
        "promote_after_ms": 7_500,
    }
    return PlaceAsked(**{**fields, **changes})


def batch(request_id: str, **changes: Any) -> PlaceAsked:
    """A batch request that waits for up to 10 minutes."""
    changes = {"wait_ms": 600_000, "promote_after_ms": 450_000, **changes}
    return asked(request_id, band=Band.BATCH, **changes)


class StoresWorkers:
    """A gateway that sees the workers of `MemoryStore.room`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def has_any(self, pool: str) -> bool:
        return bool(self._store.standing)

    def sees(self, pool: str, worker: str) -> bool:
        return worker in self._store.standing

    async def tell_again(self, pool: str) -> None:
        self._store.tell_workers()


class WaitingRoom:
    """One gateway's."""

    def __init__(
        self,
        store: MemoryStore,
        name: str = "g",
        *,
        workers: Workers | None = None,
        **settings: int,
    ) -> None:
        self.store = store
        self.queue = store.gateway(name)
        self.watch = StoreWatch(self.queue.ping, timeout_ms=100, on_return=_nothing)
        self.workers = workers or StoresWorkers(store)
        self.places = Places(
            self.queue, self.watch, store.clock, self.workers, QueueSettings(**settings)
        )
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Reply]) -> "asyncio.Task[Reply]":
        """Something that this gateway does; ends when it is killed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def place(self, request_id: str, **changes: Any) -> "asyncio.Task[HeldPlace]":
        """Ask for an interactive place."""
        return self.start(self.places.place(asked(request_id, **changes)))

    def batch(self, request_id: str, **changes: Any) -> "asyncio.Task[HeldPlace]":
        """Ask for a place for batch."""
        return self.start(self.places.place(batch(request_id, **changes)))

    @asynccontextmanager
    async def open(self) -> AsyncIterator["WaitingRoom"]:
        """With what goes on behind the requests."""
        self.start(self.places.run())
        self.start(self.watch.run())
        try:
            yield self
        finally:
            await self.end()

    async def kill(self) -> None:
        """`kill -9`: nothing of it goes on, and nothing is told to anybody."""
        self.queue.is_dead = True
        await self.end()

    async def end(self) -> None:
        """Cancel all that it does."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Slots:
    """A limit of sequences, over all gateways: a tenant's, or `of_key` one of its keys'."""

    def __init__(self, limit: int, *, of_key: bool = False) -> None:
        self.limit = limit
        self.of_key = of_key
        self.used = 0
        self.most = 0
        self.asks = 0
        self.looks = 0

    async def has_room(self) -> bool:
        self.looks += 1
        await asyncio.sleep(0)
        return self.used < self.limit

    async def refusal(self, *, of_budget: bool = False) -> LimitReached | None:
        return None if await self.has_room() else self._refused()

    async def admit(self) -> str:
        self.asks += 1
        await asyncio.sleep(0)
        if self.used >= self.limit:
            raise self._refused()
        self.used += 1
        self.most = max(self.most, self.used)
        return "a lease"

    def _refused(self) -> LimitReached:
        error = LimitReached(f"the limit is {self.limit}", kind="sequences", retry_after_ms=1_000)
        error.of_key = self.of_key
        return error


async def _nothing() -> None:
    return None


async def settle() -> None:
    """Let everything happen that can without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


class Room(Protocol):
    """Where requests ask: a `WaitingRoom`, or a gateway of its own."""

    places: Places


class ParkingTenant:
    """A tenant, or one of its keys, with a limit, and what its requests do."""

    def __init__(self, room: Room, limit: int | Slots, **asks: int | str) -> None:
        self.room = room
        self.slots = limit if isinstance(limit, Slots) else Slots(limit)
        self.asks = asks

    async def ask(self, request_id: str, **changes: int | str) -> HeldPlace:
        asks = {**self.asks, **changes}
        place, lease = await self.room.places.admit(asked(request_id, **asks), self.slots)
        assert lease == "a lease"
        return place

    async def settle(self, place: HeldPlace) -> None:
        """As the straight line: the lease first, then the place."""
        self.slots.used -= 1
        ended = place.entry.asked
        self.room.places.settled(ended.tenant, ended.key)
        await place.end(150)

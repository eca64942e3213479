"""The queues of all pools in memory, shared by several gateways.

The queue executes the specification itself (`gateway.domain.queue.pool`), so whoever it grants is
whom Redis would grant. Messages can be lost or late, replies lost, and the store can be away or
come back empty.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from queue_shares import shares_of
from virtual_time import LoopClock

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Answer, Band, Message, Ticket
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ports import BandUse, PoolUse, Run, Wish

TTL_MS = 10_000
Reply = TypeVar("Reply")


class MemoryStore:
    """The pools, and what goes wrong on the way to them and back."""

    def __init__(self, *, ttl_ms: int = TTL_MS, floor_permille: int = 50) -> None:
        self.clock = LoopClock()
        self._ttl_ms = ttl_ms
        self._floor_permille = floor_permille
        self.pools: defaultdict[str, Pool] = defaultdict(self._pool)
        self.queues: dict[str, MemoryPoolQueue] = {}
        self.away = False
        self.loses_message: Callable[[Message], bool] = lambda message: False
        self.loses_reply: Callable[[str], bool] = lambda step: False
        self.message_ms = 0
        self.delay_ms: Callable[[str], int] = lambda step: 0
        """How long a step that was sent takes to get here: a later one may overtake it."""
        self.reply_ms: Callable[[str], int] = lambda step: 0
        """And how long its reply takes back."""
        self.loses_call: Callable[[str], bool] = lambda step: False
        self.calls: list[tuple[str, str, str]] = []
        """Gateway, step, and what of: a request's id, or the pool."""
        self.standing: dict[str, WorkerRoom] = {}
        """Workers as gateways see them: they outlive what the store knows."""
        self.pool_of_room: defaultdict[str, str] = defaultdict(lambda: "m")
        self.granted: list[str] = []
        """Requests that waited, in the order of their grants."""

    def _pool(self) -> Pool:
        return Pool(self._ttl_ms, self._floor_permille)

    def lose_everything(self) -> None:
        """It comes back empty, now."""
        self.pools = defaultdict(self._pool)

    def gateway(self, name: str) -> "MemoryPoolQueue":
        """The queue as this gateway reaches it."""
        return self.queues.setdefault(name, MemoryPoolQueue(self, name))

    def room(
        self, worker: str, sequences: int, *, batch: int | None = None, pool: str = "m"
    ) -> None:
        """A worker of a pool that stays well."""
        most = sequences if batch is None else batch
        room = WorkerRoom(worker, sequences, most, 10**9, well_until_ms=2**60)
        self.standing[worker] = room
        self.pool_of_room[worker] = pool
        self.tell_workers()

    def lose_worker(self, worker: str) -> None:
        """No gateway sees it any more."""
        lost = replace(self.standing.pop(worker), well_until_ms=0)
        name = self.pool_of_room.pop(worker, "m")
        self.step(name, lambda pool, now_ms: pool.report(lost, now_ms=now_ms))

    def tell_workers(self) -> None:
        """A gateway reports them all."""
        rooms: defaultdict[str, list[WorkerRoom]] = defaultdict(list, {"m": []})
        for worker, room in self.standing.items():
            rooms[self.pool_of_room[worker]].append(room)
        for name, of_pool in rooms.items():
            self._report(name, of_pool)

    def _report(self, name: str, rooms: list[WorkerRoom]) -> None:
        self.step(name, lambda pool, now_ms: pool.report_all(rooms, now_ms=now_ms))

    def step(self, name: str, step: Callable[[Pool, int], Reply]) -> Reply:
        """One atomic step; what it leaves to tell is told."""
        pool = self.pools[name]
        reply = step(pool, self.clock.now_ms())
        while pool.is_unfinished:
            pool.tick(now_ms=self.clock.now_ms())
        messages, pool.messages[:] = list(pool.messages), []
        self.granted += [message.ticket_id for message in messages if message.is_grant]
        for message in messages:
            if not self.loses_message(message) and message.gateway in self.queues:
                put = self.queues[message.gateway].told.put_nowait
                asyncio.get_running_loop().call_later(self.message_ms / 1000, put, message)
        return reply

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return all(
            not pool.waiting
            and not pool.places
            and not any(room.running or room.tokens for room in pool.rooms.values())
            for pool in self.pools.values()
        )


class MemoryPoolQueue:
    """Implements `gateway.serving.queue_ports.PoolQueue` on a `MemoryStore`, for one gateway."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self.store = store
        self.name = name
        self.told: asyncio.Queue[Message] = asyncio.Queue()
        self.is_dead = False
        """A killed gateway: whatever it asked is never answered."""
        self._under_way: set[asyncio.Future[Any]] = set()

    async def ping(self) -> None:
        await self._reach()

    async def enter(self, pool: str, wish: Wish, *, max_queued: int, is_new: bool = True) -> Answer:
        def step(queue: Pool, now_ms: int) -> Answer:
            ticket = self._ticket(wish, now_ms)
            return queue.enter(ticket, max_queued=max_queued, is_new=is_new, now_ms=now_ms)

        return await self._step("enter", pool, wish.id, step)

    async def renew(self, pool: str, ids: Sequence[str], *, standing: bool = True) -> list[Answer]:
        return await self._step(
            "renew",
            pool,
            pool,
            lambda queue, now_ms: queue.renew_all(ids, standing=standing, now_ms=now_ms),
        )

    async def take_up(self, pool: str, ticket_id: str) -> Answer:
        return await self._step(
            "take_up",
            pool,
            ticket_id,
            lambda queue, now_ms: queue.take_up(ticket_id, now_ms=now_ms),
        )

    async def began(self, pool: str, ticket_id: str) -> bool:
        return await self._step(
            "began", pool, ticket_id, lambda queue, now_ms: queue.began(ticket_id, now_ms=now_ms)
        )

    async def leave(self, pool: str, ticket_id: str, *, actual_cost: int | None) -> None:
        await self._step(
            "leave",
            pool,
            ticket_id,
            lambda queue, now_ms: queue.leave(ticket_id, actual_cost=actual_cost, now_ms=now_ms),
        )

    async def give_back(self, pool: str, ticket_id: str) -> Answer:
        return await self._step(
            "give_back",
            pool,
            ticket_id,
            lambda queue, now_ms: queue.give_back(ticket_id, now_ms=now_ms),
        )

    async def park(self, pool: str, ticket_id: str, *, max_queued: int) -> Answer:
        return await self._step(
            "park",
            pool,
            ticket_id,
            lambda queue, now_ms: queue.park(ticket_id, max_queued=max_queued, now_ms=now_ms),
        )

    async def unpark(self, pool: str, tenant: str, lot: str) -> None:
        await self._step(
            "unpark", pool, tenant, lambda queue, now_ms: queue.unpark(tenant, lot, now_ms=now_ms)
        )

    async def move(self, pool: str, ticket_id: str, worker: str) -> bool:
        return await self._step(
            "move",
            pool,
            ticket_id,
            lambda queue, now_ms: queue.move(ticket_id, worker, now_ms=now_ms),
        )

    async def resume(self, pool: str, runs: Sequence[Run]) -> None:
        def step(queue: Pool, now_ms: int) -> None:
            told = [(self._ticket(run.wish, now_ms), run.worker, run.began) for run in runs]
            queue.resume_all(told, now_ms=now_ms)

        await self._step("resume", pool, pool, step)

    async def report(self, pool: str, rooms: Sequence[WorkerRoom], *, well_ms: int) -> None:
        def step(queue: Pool, now_ms: int) -> None:
            until_ms = now_ms + well_ms
            told = [replace(room, well_until_ms=until_ms, running=0, tokens=0) for room in rooms]
            queue.report_all(told, now_ms=now_ms)

        await self._step("report", pool, pool, step)

    async def tick(self, pool: str) -> None:
        await self._step("tick", pool, pool, lambda queue, now_ms: queue.tick(now_ms=now_ms))

    async def observe(self, pool: str) -> PoolUse:
        return await self._step("observe", pool, pool, _use)

    async def messages(self) -> AsyncIterator[Message]:
        while True:
            yield await self.told.get()

    async def _step(
        self, name: str, pool: str, what: str, step: Callable[[Pool, int], Reply]
    ) -> Reply:
        await self._reach()
        sent = asyncio.ensure_future(self._sent(name, pool, what, step))
        self._under_way.add(sent)
        sent.add_done_callback(self._under_way.discard)
        # What was sent takes effect, whoever still waits for the reply.
        return await asyncio.shield(sent)

    async def _sent(
        self, name: str, pool: str, what: str, step: Callable[[Pool, int], Reply]
    ) -> Reply:
        if delay_ms := self.store.delay_ms(name):
            await asyncio.sleep(delay_ms / 1000)
        if self.store.loses_call(name):
            raise LedgerUnavailable(TimeoutError)
        self.store.calls.append((self.name, name, what))
        reply = self.store.step(pool, step)
        await asyncio.sleep(self.store.reply_ms(name) / 1000)
        if self.store.away or self.store.loses_reply(name):
            raise LedgerUnavailable(TimeoutError)
        return reply

    async def _reach(self) -> None:
        await asyncio.sleep(0)
        if self.is_dead:
            await _for_ever()
        if self.store.away:
            raise LedgerUnavailable(ConnectionError)

    def _ticket(self, wish: Wish, now_ms: int) -> Ticket:
        return Ticket(
            id=wish.id,
            tenant=wish.tenant,
            gateway=self.name,
            band=wish.band,
            sequences=wish.sequences,
            need_tokens=wish.need_tokens,
            cost=wish.cost,
            weight=wish.weight,
            entered_ms=now_ms - wish.waited_ms,
            deadline_ms=now_ms + wish.wait_ms,
            promote_ms=now_ms + wish.promote_after_ms,
            taken_back=wish.taken_back,
            lot=wish.lot,
        )


def _for_ever() -> Awaitable[None]:
    return asyncio.get_running_loop().create_future()


def _use(queue: Pool, now_ms: int) -> PoolUse:
    queue.tick(now_ms=now_ms)
    bands = {}
    for band in Band:
        waiting = [
            each.ticket
            for each in queue.waiting.values()
            if not each.is_parked and each.ticket.order_band is band
        ]
        running = sum(place.ticket.cost for place in queue.places.values())
        tokens = sum(queue.lines[each].tokens for each in Band if each <= band)
        bands[band] = BandUse(
            requests=len(waiting),
            weighted_tokens=sum(ticket.cost for ticket in waiting),
            need_tokens=sum(ticket.need_tokens for ticket in waiting),
            oldest_wait_ms=max((now_ms - ticket.entered_ms for ticket in waiting), default=0),
            wait_ms=queue.speed.wait_ms(tokens, running),
        )
    tenants: defaultdict[str, int] = defaultdict(int)
    for each in queue.waiting.values():
        tenants[each.ticket.tenant] += 1
    return PoolUse(
        bands=bands,
        parked=sum(each.is_parked for each in queue.waiting.values()),
        rooms=tuple(queue.rooms.values()),
        tenants_waiting=dict(tenants),
        shares=shares_of(queue),
    )

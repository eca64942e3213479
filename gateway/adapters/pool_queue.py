"""The queues of all pools in Redis: runs the Lua scripts, maps their replies.

Holds no rule of its own: those are `gateway.domain.queue.pool.Pool`, executed by `lua_queue/*.lua`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

from redis.exceptions import RedisError

from gateway.adapters import pool_queue_records as records
from gateway.adapters.pool_queue_messages import GrantMessages
from gateway.adapters.pool_queue_scripts import SCRIPTS, keys_of, script_source
from gateway.adapters.redis import RedisClient, Script
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.pool_state import FLOOR_PERMILLE
from gateway.domain.queue.tickets import Answer, Message
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ports import PoolUse, Run, Wish
from gateway.serving.store_time import StoreTime

AT_ONCE = 128
"""Tickets that one script renews or resumes: whoever has more keeps nobody waiting."""


class RedisPoolQueue:
    """Every step is one atomic script on one pool's keys, which share a hash slot.

    Raises LedgerUnavailable where Redis cannot be reached, refuses, or takes longer than
    `timeout_ms` (`StoreTime`); then the step may or may not have been taken, and repeating it is
    safe. `ttl_ms` is how long a ticket or place lives unless renewed. `url` is where messages are
    listened to. `clock_ms` replaces the server's time in tests.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        url: str,
        gateway: str,
        ttl_ms: int,
        timeout_ms: int,
        floor_permille: int = FLOOR_PERMILLE,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        self._gateway = records.gateway_name(gateway)
        self._ttl_ms = ttl_ms
        self._timeout_s = timeout_ms / 1000
        self._floor_permille = floor_permille
        self._clock_ms = clock_ms
        self._messages = GrantMessages(url, gateway, timeout_ms=timeout_ms)
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._scripts: dict[str, Script] = {
            name: redis.register_script(script_source(name)) for name in SCRIPTS
        }

    async def enter(self, pool: str, wish: Wish, *, max_queued: int, is_new: bool = True) -> Answer:
        """Ask for a place. Idempotent by id."""
        arguments = (*records.wish_arguments(wish, self._gateway), max_queued, int(is_new))
        return self._answer(await self._run("enter", pool, arguments))

    async def renew(self, pool: str, ids: Sequence[str], *, standing: bool = True) -> list[Answer]:
        """An answer for each, in their order."""
        answers: list[Answer] = []
        for first in range(0, len(ids), AT_ONCE):
            arguments: list[records.Argument] = [int(standing), *ids[first : first + AT_ONCE]]
            (reply,) = await self._run("renew", pool, arguments)
            answers += map(records.answer, cast("list[list[object]]", reply))
        return answers

    async def take_up(self, pool: str, ticket_id: str) -> Answer:
        """A grant has reached this gateway."""
        return self._answer(await self._run("take_up", pool, [ticket_id]))

    async def began(self, pool: str, ticket_id: str) -> bool:
        """The first token came; False where it holds no place."""
        (holds,) = await self._run("began", pool, [ticket_id])
        return bool(holds)

    async def leave(self, pool: str, ticket_id: str, *, actual_cost: int | None) -> None:
        """It ended, or does not want to wait any more."""
        cost = -1 if actual_cost is None else max(actual_cost, 0)
        await self._run("leave", pool, [ticket_id, cost])

    async def give_back(self, pool: str, ticket_id: str) -> Answer:
        """What was taken back is free; the request waits again."""
        return self._answer(await self._run("again", pool, [ticket_id, 0]))

    async def park(self, pool: str, ticket_id: str, *, max_queued: int) -> Answer:
        """The place is free; the request waits for `unpark`, unless its tenant has so many others
        waiting."""
        return self._answer(await self._run("again", pool, [ticket_id, 1, max_queued]))

    async def unpark(self, pool: str, tenant: str, lot: str) -> None:
        """The earliest parked request of a lot waits for a place again."""
        await self._run("unpark", pool, [tenant, lot])

    async def move(self, pool: str, ticket_id: str, worker: str) -> bool:
        """The request is tried on another worker; False where it holds no place."""
        (holds,) = await self._run("move", pool, [ticket_id, records.name(worker)])
        return bool(holds)

    async def resume(self, pool: str, runs: Sequence[Run]) -> None:
        """Tell a store that forgot it what runs. Before it knows workers (`report`) it grants
        nothing, so resume first."""
        for first in range(0, len(runs), AT_ONCE):
            arguments: list[records.Argument] = []
            for run in runs[first : first + AT_ONCE]:
                wish = records.wish_arguments(run.wish, self._gateway)
                arguments += [records.name(run.worker), int(run.began), *wish]
            await self._run("resume", pool, arguments)

    async def report(self, pool: str, rooms: Sequence[WorkerRoom], *, well_ms: int) -> None:
        """Ceilings of workers that are well now, and for so long."""
        arguments: list[records.Argument] = [well_ms]
        for room in rooms:
            arguments += records.room_arguments(room)
        await self._run("report", pool, arguments)

    async def tick(self, pool: str) -> None:
        """Time has passed."""
        await self._run("tick", pool, [])

    async def observe(self, pool: str) -> PoolUse:
        """A pool as it is now. Costs the store a little for each tenant that it knows."""
        return records.pool_use(await self._run("observe", pool, []))

    def messages(self) -> AsyncIterator[Message]:
        """What this gateway is told, for ever."""
        return self._messages.listen()

    @property
    def is_listening(self) -> bool:
        """Whether somebody who reads `messages` is told now."""
        return self._messages.listening.is_set()

    async def listening(self) -> None:
        """Once somebody who reads `messages` is told."""
        await self._messages.listening.wait()

    async def finished(self) -> None:
        """Once what steps left to others is done too."""
        while self._finishing:
            await asyncio.gather(*self._finishing.values(), return_exceptions=True)

    async def aclose(self) -> None:
        """Stop what goes on behind the calls."""
        for task in list(self._finishing.values()):
            task.cancel()
        await self.finished()

    async def _run(
        self, name: str, pool: str, arguments: Sequence[records.Argument]
    ) -> list[object]:
        try:
            async with StoreTime(self._timeout_s):
                unfinished, *reply = await self._once(name, pool, arguments)
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error
        if unfinished and pool not in self._finishing:
            self._finishing[pool] = asyncio.create_task(self._finish(pool))
        return reply

    async def _finish(self, pool: str) -> None:
        """Go on until nothing is left. Where it fails, whoever comes next goes on."""
        try:
            while (await self._once("tick", pool, ()))[0]:
                pass
        except (RedisError, OSError, TimeoutError):
            pass
        finally:
            del self._finishing[pool]

    async def _once(
        self, name: str, pool: str, arguments: Sequence[records.Argument]
    ) -> list[object]:
        now = "" if self._clock_ms is None else self._clock_ms()
        head = (now, self._ttl_ms, self._floor_permille)
        return cast(
            "list[object]",
            await self._scripts[name](keys_of(records.name(pool)), (*head, *arguments)),
        )

    @staticmethod
    def _answer(reply: Sequence[object]) -> Answer:
        return records.answer(cast("list[object]", reply[0]))

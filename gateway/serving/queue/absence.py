"""Requests that wait while no worker of their pool is there: until one is, or their wait is over.

Nothing can be counted or granted meanwhile, so they are in no queue yet; each gateway holds its
own. Once a worker is there they go on, interactive first and the earliest deadline first.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

from gateway.serving.ports import ClientConnection, ClientGone, Clock
from gateway.serving.queue import refusals
from gateway.serving.queue.asked import Patience
from gateway.serving.queue.refusals import WorkersGone
from gateway.serving.withdrawal import Withdrawn

LOOK_S = 0.05
_Turn = tuple[int, int, int]


class Absence:
    """Who waits here for a worker of which pool. `has_any`: whether one may take a stream now."""

    def __init__(self, has_any: Callable[[str], bool], clock: Clock) -> None:
        self._has_any = has_any
        self._clock = clock
        self._waiting: dict[str, dict[_Turn, asyncio.Future[None]]] = {}
        self._asked_by: dict[asyncio.Future[None], tuple[str, str]] = {}
        self._of_tenant: Counter[tuple[str, str]] = Counter()
        self._numbered = 0
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._waiting.values())

    async def until_worker(
        self,
        pool: str,
        tenant: str,
        patience: Patience,
        connection: ClientConnection,
        *,
        key: str = "",
    ) -> int:
        """Return when a worker is there, after so many ms.

        Raises WorkersGone where the request may not wait or has waited for as long as it may,
        LimitReached of type `queue` where its tenant has too many here, ClientGone where the client
        left, Overloaded(no_capacity) where the gateway goes down, InvalidApiKey where key or tenant
        was withdrawn meanwhile.
        """
        if self._has_any(pool):
            return 0
        if not patience.max_queued or not patience.wait_ms:
            raise WorkersGone(pool)
        if self._is_over:
            raise refusals.shutting_down()
        of_tenant = self._of_tenant[pool, tenant]
        if of_tenant >= patience.max_queued:
            raise refusals.queue_full(of_tenant, patience.max_queued, None)
        since_us = self._clock.monotonic_us()
        turn = (patience.band, since_us + patience.wait_ms * 1000, self._numbered)
        self._numbered += 1
        self._of_tenant[pool, tenant] += 1
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(pool, {})[turn] = told
        self._asked_by[told] = tenant, key
        connection.on_leave(lambda: _stop(told, ClientGone()))
        self._look()
        try:
            async with asyncio.timeout(patience.wait_ms / 1000):
                await told
        except TimeoutError:
            raise WorkersGone(pool) from None
        finally:
            del self._asked_by[told]
            self._forget(pool, tenant, turn)
        return (self._clock.monotonic_us() - since_us) // 1000

    def stop_all(self) -> None:
        """The gateway goes down: who waits is told so."""
        self._is_over = True
        for waiting in self._waiting.values():
            for told in waiting.values():
                _stop(told, refusals.shutting_down())

    def end_withdrawn(self, withdrawn: Withdrawn) -> None:
        """Who waits with a withdrawn key, or for a withdrawn tenant, is told so."""
        for told, (tenant, key) in self._asked_by.items():
            refusal = withdrawn.refusal(tenant, key)
            if refusal is not None:
                _stop(told, refusal)

    def _forget(self, pool: str, tenant: str, turn: _Turn) -> None:
        del self._waiting[pool][turn]
        if not self._waiting[pool]:
            del self._waiting[pool]
        self._of_tenant[pool, tenant] -= 1
        if not self._of_tenant[pool, tenant]:
            del self._of_tenant[pool, tenant]
        if not self._waiting and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _look(self) -> None:
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_out())

    async def _look_out(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for pool in [pool for pool in self._waiting if self._has_any(pool)]:
                for _, told in sorted(self._waiting[pool].items()):
                    with contextlib.suppress(asyncio.InvalidStateError):
                        told.set_result(None)


def _stop(told: "asyncio.Future[None]", error: Exception) -> None:
    if not told.done():
        told.set_exception(error)

"""Whether this gateway sees the worker that a place is on.

Gateways find a worker one after the other, within two seconds or so, and the store grants its
places from the first on. Who is granted one here meanwhile keeps it until this gateway has found
the worker too. Where it takes longer nobody else is kept from the place: the request goes on to a
worker that is seen here or, where there is none, waits for one in no queue.
"""

import asyncio

from gateway.serving.queue.entry import Entry
from gateway.serving.queue.refusals import WorkersGone
from gateway.serving.queue.restoring import Workers

SEEN_MS = 2_000
LOOK_S = 0.05


async def may_use(entry: Entry, workers: Workers, worker: str) -> bool:
    """Whether its place on this worker can be used; waits for `SEEN_MS` at most until it can. Then
    another that is seen takes it, as after a failure; False where there is none. One that is asked
    back goes back. Raises what it was stopped with."""
    pool, loop = entry.asked.pool, asyncio.get_running_loop()
    wait_ms = min(SEEN_MS, entry.left_ms) if entry.asked.max_queued else 0
    until_s = loop.time() + wait_ms / 1000
    while not workers.sees(pool, worker) and not entry.taken_back.is_set():
        if loop.time() >= until_s:
            return workers.has_any(pool)
        await entry.pause(min(LOOK_S, until_s - loop.time()))
    return True


async def until_any(entry: Entry, workers: Workers) -> None:
    """Return when a worker of its pool is seen. Raises WorkersGone at its deadline or where it does
    not wait, and what it was stopped with."""
    pool, loop = entry.asked.pool, asyncio.get_running_loop()
    until_s = loop.time() + (entry.left_ms / 1000 if entry.asked.max_queued else 0)
    while not workers.has_any(pool):
        if loop.time() >= until_s:
            raise WorkersGone(pool)
        await entry.pause(min(LOOK_S, until_s - loop.time()))

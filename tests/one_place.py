"""A gateway in memory whose requests wait: for a worker with few places."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from memory_gateway import MemoryGateway
from scripted_engine import Step
from tenant_examples import a_key

from gateway.domain.tenant import Limits

BATCH = {b"x-weir-class": b"batch"}


@asynccontextmanager
async def one_place(
    *scripts: Sequence[Step], limits: Limits | None = None, places: int = 1, workers: int = 1
) -> AsyncIterator[MemoryGateway]:
    """A worker with so many places (others with none but what is sent there), a key whose requests
    wait, and a waiting room that hears what it is told."""
    gateway = MemoryGateway(*scripts, workers=workers)
    gateway.directory.keys = [a_key(limits or Limits())]
    gateway.queues.room("w0", places)
    loop = asyncio.create_task(gateway.places.run())
    try:
        yield gateway
    finally:
        loop.cancel()
        await asyncio.wait([loop])
    gateway.assert_at_rest()

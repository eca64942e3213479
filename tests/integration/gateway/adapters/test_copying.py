"""What a gateway says of its journal, beside what is in it."""

import asyncio
import threading
from pathlib import Path

from servers import eventually
from usage_examples import a_record, an_admission

from gateway.adapters.copying import Copying
from gateway.adapters.journal import Journal
from gateway.adapters.journal.storage import Storage
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.adapters.shipper import Shipper


class HeldDisk(Storage):
    """The real disk, whose syncs wait while `may_sync` is not set."""

    def __init__(self) -> None:
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.waits = threading.Event()

    def sync(self, descriptor: int) -> None:
        if not self.may_sync.is_set():
            self.waits.set()
            self.may_sync.wait(30)
        super().sync(descriptor)


async def test_what_waits_for_its_sync_is_not_open_yet(
    tmp_path: Path, redis_url: str, database_url: str
) -> None:
    """How many are open is told of the number that is durable, neither before nor after it."""
    disk, redis, engine = (
        HeldDisk(),
        connect_redis(redis_url, timeout_ms=1_000),
        async_engine(database_url),
    )
    journal = await Journal.open(tmp_path, storage=disk)
    copying = Copying(redis, journal, Shipper(engine, journal), entries_max=100, progress=dict)
    admissions = [an_admission() for _ in range(3)]
    await copying.journal.admitted(admissions[0])
    disk.may_sync.clear()
    waiting = [asyncio.create_task(copying.journal.admitted(each)) for each in admissions[1:]]
    await eventually(disk.waits.is_set, what="a sync that waits")
    told = copying.heartbeat()
    assert (told.durable_seq, told.open_count) == (1, 1)
    disk.may_sync.set()
    await asyncio.gather(*waiting)
    assert (copying.heartbeat().durable_seq, copying.heartbeat().open_count) == (3, 3)
    await copying.journal.ended(a_record(admissions[0]))
    assert (copying.heartbeat().durable_seq, copying.heartbeat().open_count) == (4, 2)
    await journal.close()
    await redis.aclose()
    await engine.dispose()

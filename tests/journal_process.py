"""A process that journals requests without end, ships them where it is given a database, and keeps
a second copy where it is given a store too.

`python journal_process.py DIRECTORY [DATABASE_URL [REDIS_URL]]` writes a line to standard output
for each thing that has returned: `admitted ID` and `ended ID`. It is made to be killed.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from usage_examples import a_record, an_admission

from gateway.adapters.copying import Copying
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.adapters.shipper import Shipper
from gateway.serving.ports import UsageJournal

CLIENTS = 40
SEGMENT_BYTES = 200_000


def say(word: str, request_id: object) -> None:
    """One line, out of this process before the next thing happens."""
    os.write(1, f"{word} {request_id}\n".encode())


async def client(journal: UsageJournal) -> None:
    """One request after the other."""
    while True:
        admission = an_admission()
        await journal.admitted(admission)
        say("admitted", admission.request_id)
        await asyncio.sleep(random.uniform(0, 0.004))  # noqa: S311 - a load, not a secret
        await journal.ended(a_record(admission))
        say("ended", admission.request_id)


async def run(directory: Path, database_url: str | None = None, redis_url: str = "") -> None:
    """Until killed."""
    journal = await Journal.open(directory, segment_bytes=SEGMENT_BYTES)
    line: UsageJournal = journal
    async with asyncio.TaskGroup() as group:
        if database_url is not None:
            shipper = Shipper(async_engine(database_url), journal, interval_ms=5, batch_rows=100)
            if redis_url:
                store = connect_redis(redis_url, timeout_ms=1_000)
                copied = Copying(store, journal, shipper, entries_max=100_000, progress=dict)
                line = copied.journal
                group.create_task(copied.run())
            shipper.start()
        for _ in range(CLIENTS):
            group.create_task(client(line))


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), *sys.argv[2:]))

"""Each call to the disk fails, with each errno, at each moment of a journal's life: what returned
is there once, what was refused never ran, and the journal comes back by itself."""

import asyncio
import errno
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest
from controlled_storage import CALLS, ControlledStorage, Fault
from servers import eventually
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.adapters.journal import Journal, JournalUnusable
from gateway.adapters.journal.backlog import Backlog
from gateway.adapters.journal.segment import list_segments
from gateway.domain.lease import Admitted
from gateway.errors import Overloaded

SEGMENT_BYTES = 6_000
CODES = ("ENOSPC", "EROFS", "EIO")


class Books:
    """A journal on a disk that may fail, and what its callers were told."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.storage = ControlledStorage()
        self.admitted: dict[UUID, Admitted] = {}
        self.ended: dict[UUID, UsageRecord] = {}
        self.refused: set[UUID] = set()
        self.running: list[Admitted] = []
        self.journal: Journal
        self._ending: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        self.journal = await Journal.open(
            self.directory,
            storage=self.storage,
            segment_bytes=SEGMENT_BYTES,
            heal_interval_ms=5,
        )
        for lost in self.journal.recovered.lost:
            self.running.remove(lost)

    async def admit(self) -> None:
        """A request, which runs unless it is refused."""
        admission = an_admission()
        try:
            await asyncio.wait_for(self.journal.admitted(admission), 5)
        except Overloaded as refusal:
            assert refusal.code == "metering_unavailable"  # noqa: PT017 - it may also succeed
            self.refused.add(admission.request_id)
        else:
            self.admitted[admission.request_id] = admission
            self.running.append(admission)

    def end(self) -> None:
        """The oldest that runs ends; its journal may take it later."""
        self._ending.append(asyncio.create_task(self._end(self.running.pop(0))))

    async def _end(self, admission: Admitted) -> None:
        record = a_record(admission)
        await self.journal.ended(record)
        self.ended[admission.request_id] = record

    async def heals(self) -> None:
        """With the disk well again, all that ended is recorded and requests are admitted."""
        self.storage.faults.clear()
        await eventually(lambda: not self.journal.failing, what="the heal")
        await asyncio.wait_for(asyncio.gather(*self._ending), 5)
        refused = len(self.refused)
        await self.admit()
        assert len(self.refused) == refused

    def recorded(self) -> dict[UUID, list[UsageRecord]]:
        """Every end that the shipper would read, in order."""
        backlog = Backlog(self.journal)
        backlog.seek({})
        found: defaultdict[UUID, list[UsageRecord]] = defaultdict(list)
        while (batch := backlog.read(1000)) is not None:
            for entry in batch.ended:
                found[entry.body.request_id].append(entry.body)
            backlog.accept(batch)
        return found

    async def check(self, *, lost: int = 0) -> None:
        """After another start: one account of each request that was admitted, the one that was
        acknowledged. `lost` ends are allowed to be gone from the disk."""
        await self.journal.close()
        running = {each.request_id for each in self.running}
        await self.open()
        found = self.recorded()
        await self.journal.close()
        assert len(self.admitted.keys() - found.keys()) == lost
        for request_id, records in found.items():
            assert all(record == records[0] for record in records)
            if request_id in self.ended:
                assert records[0] == self.ended[request_id]
            else:
                assert records[0].outcome is Outcome.GATEWAY_LOST
                assert request_id in running | self.refused


@pytest.fixture
async def books(tmp_path: Path) -> Books:
    """A journal in which some have ended and some run."""
    made = Books(tmp_path)
    await made.open()
    for _ in range(4):
        await made.admit()
    made.end()
    return made


async def use(books: Books) -> None:
    """Requests come and go while the disk fails."""
    for _ in range(2):
        await books.admit()
        books.end()
        await asyncio.sleep(0.015)  # a few turns of the writer, whether or not they succeed


async def at_the_roll(books: Books) -> None:
    """The next admissions need a new segment."""
    faults, books.storage.faults = books.storage.faults, {}
    while books.journal.durable.end < SEGMENT_BYTES:
        await books.admit()
    books.storage.faults = faults
    await use(books)


async def at_the_heal(books: Books) -> None:
    """A write has failed, and so does writing again. What it left is cut before anything else."""
    faults = dict(books.storage.faults)
    cut = {call: fault for call, fault in faults.items() if call == "truncate"}
    books.storage.faults = {**cut, "write": Fault(errno.EIO)}
    books.end()
    await eventually(lambda: books.journal.failing, what="the failure")
    books.storage.faults = faults
    await use(books)


async def at_the_putting_back(books: Books) -> None:
    """The segment has lost its name."""
    for key in list_segments(books.directory):
        key.path(books.directory).unlink()
    await use(books)


MOMENTS: dict[str, Callable[[Books], Awaitable[None]]] = {
    "in use": use,
    "at the roll": at_the_roll,
    "at the heal": at_the_heal,
    "at the putting back": at_the_putting_back,
}
A_SEGMENT = {"create", "write", "sync", "reserve", "rename", "sync_directory"}
"""What a new segment takes."""
REACHED = {
    "in use": {"write", "sync"},
    "at the roll": A_SEGMENT | {"truncate"},
    "at the heal": A_SEGMENT | {"truncate"},
    "at the putting back": A_SEGMENT | {"truncate"},
}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_no_call_that_fails_loses_or_doubles(
    books: Books, moment: str, call: str, code: str
) -> None:
    """INV-5: while it runs."""
    books.storage.faults = {call: Fault(getattr(errno, code))}
    await MOMENTS[moment](books)
    assert bool(books.storage.failed[call]) == (call in REACHED[moment])
    await books.heals()
    await books.check()


@pytest.mark.parametrize("moment", ["at the roll", "at the heal", "at the putting back"])
@pytest.mark.parametrize("heals", [True, False])
async def test_a_segment_that_cannot_be_taken_away_hides_nothing(
    books: Books, moment: str, heals: bool
) -> None:
    """INV-5: its name was written and may not be durable, and it could not be removed; the process
    ends then, or goes on."""
    books.storage.faults = {
        "sync_directory": Fault(errno.EIO, after=moment == "at the heal"),
        "remove": Fault(errno.EROFS),
    }
    await MOMENTS[moment](books)
    assert books.storage.failed["remove"] or moment == "at the putting back"
    if heals:
        await books.heals()
    books.storage.faults.clear()
    await books.check()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("call", CALLS)
async def test_a_start_on_such_a_disk_is_refused_in_a_line(
    books: Books, call: str, code: str
) -> None:
    """INV-5: it starts or says why it does not, and the next start finds all that was there."""
    await books.heals()
    await books.journal.close()
    books.storage.faults = {call: Fault(getattr(errno, code))}
    running = list(books.running)
    try:
        await books.open()
    except JournalUnusable as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - it may also succeed
        assert books.storage.failed[call]
        books.storage.faults.clear()
        await books.open()
    else:
        assert not books.storage.failed[call]
    books.running += running
    await books.check()

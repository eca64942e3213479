"""The second copy of what Postgres lacks, in a real store beside a real journal."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from pausable_proxy import PausableProxy
from servers import eventually, flush
from shipping import serve
from usage_examples import FailingStorage, a_record, an_admission

from billing.domain.usage_record import UsageRecord
from gateway.adapters.copied_journal import CopiedJournal
from gateway.adapters.journal import Journal
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import Copies, Copy, encode_copy
from gateway.adapters.second_copy_repair import CopyRepair
from gateway.domain.lease import Admitted
from gateway.errors import Overloaded

TIMEOUT_MS = 100


@dataclass
class Copied:
    """A journal with its copy, whose shipper has come as far as `place` says."""

    journal: Journal
    copies: SecondCopy
    line: CopiedJournal
    repair: CopyRepair
    store: Copies
    places: list[tuple[int, int] | None] = field(default_factory=lambda: [None])

    def shipped_to(self, boot: int, seq: int) -> None:
        self.places[0] = (boot, seq)

    async def kept(self) -> dict[UUID, Admitted | UsageRecord]:
        return {copy.request_id: copy.body for copy in await self.all()}

    async def all(self) -> list[Copy]:
        return [copy async for copy in self.store.of(self.journal.gateway_id)]

    async def repaired(self) -> None:
        """Until the copy is whole and all is sent, as its loop would."""
        async with asyncio.timeout(20):
            while self.copies.is_behind or not await self.copies.flush():
                await self.repair.turn()
                await asyncio.sleep(0.01)


@asynccontextmanager
async def copied(
    directory: Path,
    url: str,
    *,
    storage: FailingStorage | None = None,
    entries_max: int = 1000,
    progress: Callable[[], Mapping[UUID, tuple[int, int]]] = dict,
) -> AsyncIterator[Copied]:
    """A journal in `directory` and its copy at `url`; nothing of the journal is shipped."""
    client = connect_redis(url, timeout_ms=TIMEOUT_MS)
    journal = await Journal.open(directory, storage=storage, segment_bytes=20_000)
    places: list[tuple[int, int] | None] = [(0, 0)]
    reader = connect_redis(url, timeout_ms=5_000)
    copies, store = SecondCopy(client, journal.gateway_id, entries_max=entries_max), Copies(reader)
    line = CopiedJournal(journal, copies)
    repair = CopyRepair(
        copies,
        store,
        journal,
        open_requests=line.open,
        place=lambda: places[0],
        progress=progress,
    )
    yield Copied(journal, copies, line, repair, store, places)
    await copies.flush()
    await journal.close()
    await client.aclose()
    await reader.aclose()


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of an empty store."""
    client = connect_redis(redis_url, timeout_ms=1_000)
    yield client
    await client.aclose()


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[PausableProxy]:
    """The way to an empty store, which may hang."""
    between = PausableProxy(redis_url)
    await between.listen()
    yield between
    await between.refuse()


async def test_an_end_replaces_its_admission_until_it_is_shipped(
    tmp_path: Path, redis_url: str
) -> None:
    """What returned has a copy, the later of the two; what Postgres has, none."""
    async with copied(tmp_path, redis_url) as system:
        admissions = [an_admission() for _ in range(300)]
        await asyncio.gather(*(system.line.admitted(each) for each in admissions))
        assert await system.kept() == {each.request_id: each for each in admissions}
        records = [a_record(each) for each in admissions[:200]]
        await asyncio.gather(*(system.line.ended(each) for each in records))
        kept = await system.kept()
        assert [kept[each.request_id] for each in records] == records
        assert len(kept) == 300
        system.line.shipped([each.request_id for each in records])
        assert await system.copies.flush()
        assert await system.kept() == {each.request_id: each for each in admissions[200:]}
        assert system.line.open.keys() == (await system.kept()).keys()


async def test_an_admission_never_replaces_an_end(tmp_path: Path, redis_url: str) -> None:
    """Neither one that comes late nor one that is copied again, within one call or after it."""
    admission = an_admission()
    record = a_record(admission)
    async with copied(tmp_path, redis_url) as system:
        await system.line.admitted(admission)
        await system.line.ended(record)
        assert await system.copies.flush()
        late: list[list[Admitted | UsageRecord]] = [[admission], [record, admission]]
        for bodies in late:
            for body in bodies:
                system.copies.add(record.request_id, encode_copy(body))
            assert await system.copies.flush()
            assert await system.kept() == {record.request_id: record}


async def test_what_returned_is_in_the_store(
    tmp_path: Path, redis_url: str, proxy: PausableProxy
) -> None:
    """Also where the store answers later than the disk."""
    proxy.delay_s = 0.01
    store = connect_redis(redis_url, timeout_ms=TIMEOUT_MS)
    async with copied(tmp_path, proxy.url) as system:
        for _ in range(5):
            admission = an_admission()
            await system.line.admitted(admission)
            assert admission.request_id in await Copies(store).names(system.journal.gateway_id)
    await store.aclose()


async def test_a_refused_admission_has_no_copy(tmp_path: Path, redis_url: str) -> None:
    """What the journal did not take did not run, and nobody is to bill it."""
    storage = FailingStorage()
    async with copied(tmp_path, redis_url, storage=storage) as system:
        storage.sync_errno = 5
        with pytest.raises(Overloaded):
            await system.line.admitted(an_admission())
        assert await system.copies.flush()
        assert await system.kept() == {}
        assert system.line.open == {}


async def test_a_store_that_hangs_holds_up_nobody(tmp_path: Path, proxy: PausableProxy) -> None:
    """M19: the first wait 50 ms, then nobody waits; nothing is refused. Once it answers again, all
    that is open or not shipped has its copy."""
    async with copied(tmp_path, proxy.url) as system:
        await system.repaired()
        running = [an_admission() for _ in range(3)]
        for each in running:
            await system.line.admitted(each)
        proxy.hang()
        began = time.monotonic()
        first = await serve(system.line, 20)
        assert time.monotonic() - began < 0.15
        began = time.monotonic()
        more = [record for _ in range(5) for record in await serve(system.line, 20)]
        assert time.monotonic() - began < 0.15
        await eventually(lambda: system.copies.is_away)
        await system.line.ended(a_record(running[0]))
        assert not await system.copies.flush()
        assert system.copies.uncopied >= 40
        await proxy.heal()
        await system.repaired()
        kept = await system.kept()
        ended = {each.request_id for each in (*first, *more, a_record(running[0]))}
        assert kept.keys() == ended | {each.request_id for each in running[1:]}
        assert all(isinstance(kept[each], UsageRecord) for each in ended)
        assert kept[running[1].request_id] == running[1]


class HeldDisk(FailingStorage):
    """Syncs only while `may` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.may.set()

    def sync(self, descriptor: int) -> None:
        assert self.may.wait(20)
        super().sync(descriptor)


async def test_an_end_that_was_durable_only_after_the_repair(
    tmp_path: Path, proxy: PausableProxy
) -> None:
    """The repair does not find it in the journal: it is copied when it is durable."""
    disk = HeldDisk()
    async with copied(tmp_path, proxy.url, storage=disk) as system:
        admission = an_admission()
        await system.line.admitted(admission)
        proxy.hang()
        assert not await system.copies.flush()
        disk.may.clear()
        ending = asyncio.create_task(system.line.ended(a_record(admission)))
        await asyncio.sleep(0)
        await proxy.heal()
        await system.repaired()
        assert await system.kept() == {admission.request_id: admission}
        disk.may.set()
        await ending
        assert await system.copies.flush()
        assert await system.kept() == {admission.request_id: a_record(admission)}


async def test_what_ends_while_it_is_copied_again_is_not_forgotten(
    tmp_path: Path, proxy: PausableProxy
) -> None:
    """Requests go on while the store comes and goes: in the end each has its last word."""
    async with copied(tmp_path, proxy.url, entries_max=1_000_000) as system:
        await system.repaired()
        task = asyncio.create_task(system.repair.run())
        records: list[UsageRecord] = []
        for _ in range(4):
            records += await serve(system.line, 30)
            proxy.hang()
            records += await serve(system.line, 30)
            await eventually(lambda: system.copies.is_away)
            await proxy.heal()
            while system.copies.is_behind:
                records += await serve(system.line, 5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await system.repaired()
        assert await system.kept() == {each.request_id: each for each in records}


async def test_a_store_that_came_back_empty_has_it_all_again(
    tmp_path: Path, redis_url: str
) -> None:
    """Noticed at the next write, or, where nothing happens, at the next turn."""
    async with copied(tmp_path, redis_url) as system:
        await system.repaired()
        records = await serve(system.line, 30)
        running = an_admission()
        await system.line.admitted(running)
        flush(redis_url)
        await system.repair.turn()
        assert not system.copies.is_behind
        kept = await system.kept()
        assert kept.pop(running.request_id) == running
        assert kept == {each.request_id: each for each in records}


async def test_what_an_earlier_life_left_is_copied_or_taken_out(
    tmp_path: Path, redis_url: str
) -> None:
    """A gateway that begins again copies what is not shipped, requests that were lost with it
    too, and takes out what is; not before it knows how far it had shipped."""
    async with copied(tmp_path, redis_url) as before:
        await before.repaired()
        shipped = await serve(before.line, 10)
        place = before.journal.durable
        waiting = await serve(before.line, 10)
        lost = an_admission()
        await before.line.admitted(lost)
        before.copies.take_out([waiting[0].request_id])
    async with copied(tmp_path, redis_url) as system:
        system.places[0] = None
        await system.repair.turn()
        assert system.copies.is_behind
        assert len(await system.kept()) == 20
        system.shipped_to(place.key.boot, place.seq)
        await system.repair.turn()
        assert await system.copies.flush()
        kept = await system.kept()
        assert kept.keys() == {lost.request_id} | {each.request_id for each in waiting}
        assert not kept.keys() & {each.request_id for each in shipped}
        end = kept[lost.request_id]
        assert isinstance(end, UsageRecord)
        assert end.outcome == "gateway_lost"


async def test_there_is_an_end_to_what_it_holds(tmp_path: Path, redis_url: str) -> None:
    """Over the most it takes no more, and says so; an end still takes its admission's room. With
    room again it is made whole."""
    async with copied(tmp_path, redis_url, entries_max=10) as system:
        await system.repaired()
        running = an_admission()
        await system.line.admitted(running)
        shipped = await serve(system.line, 9)
        place = system.journal.durable
        waiting = await serve(system.line, 5)
        assert system.copies.is_full
        assert system.repair.is_late
        record = a_record(running)
        await system.line.ended(record)
        assert await system.kept() == {each.request_id: each for each in (record, *shipped)}
        system.shipped_to(place.key.boot, place.seq)
        system.line.shipped([each.request_id for each in shipped])
        await system.repaired()
        assert not system.copies.is_full
        assert not system.repair.is_late
        assert await system.kept() == {each.request_id: each for each in (record, *waiting)}


async def test_how_far_a_request_has_come_is_told(tmp_path: Path, redis_url: str) -> None:
    """With its admission, in place of what was told before; an end has counts of its own."""
    running = an_admission()
    told = {running.request_id: (12, 5)}
    async with copied(tmp_path, redis_url, progress=lambda: told) as system:
        await system.line.admitted(running)
        (ended,) = await serve(system.line, 1)
        await system.repaired()
        counts = {
            each.request_id: (each.prompt_tokens, each.output_tokens) for each in await system.all()
        }
        assert counts == {running.request_id: (12, 5), ended.request_id: (12, 20)}

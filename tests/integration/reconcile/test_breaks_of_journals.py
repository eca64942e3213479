"""REC-1, broken on purpose in a real database, and what it must not find."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from broken_books import TOKENS, named, terms
from shipping import DRAIN_MS
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from billing.postgres.dead_letters import DeadLetter, bury
from billing.postgres.journal_watermarks import Watermark, load_watermarks
from billing.postgres.reconcile_records import replay
from billing.postgres.shipments import Shipment, _letter, store, store_spare
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.journal import Journal
from gateway.adapters.shipper import Shipper
from gateway.domain.lease import Admitted


async def write(engine: AsyncEngine, record: UsageRecord, gateway_id: str) -> None:
    """A row that came by another way than a journal."""
    async with engine.begin() as db:
        await insert_batch(db, [JournaledRecord(record, gateway_id)])


async def test_rec_1_a_row_that_is_gone(books: Any) -> None:
    """The numbers say how many, its attempt says which; the journal too, where one is at hand."""
    lost = books.records[1]
    await books.sql("DELETE FROM usage_record WHERE request_id = :id", id=lost.request_id)
    found = await books.found()
    assert set(found) == {"REC-1"}
    assert named(found["REC-1"]) == [
        (None, 1, "usage records"),
        (str(lost.request_id), TOKENS, "tokens"),
    ]
    await books.sql("DELETE FROM usage_attempt WHERE request_id = :id", id=lost.request_id)
    assert named((await books.found())["REC-1"]) == [(None, 1, "usage records")]
    found = await books.found("--journal", str(books.directory))
    assert (str(lost.request_id), TOKENS, "tokens") in named(found["REC-1"])
    assert named(found["REC-7"]) == [(str(lost.request_id), TOKENS, "tokens")]


async def test_rec_1_numbers_that_a_disk_has_lost(books: Any) -> None:
    """Both ends of the gap are told."""
    await books.sql(
        "UPDATE journal_watermark SET seq = seq + 3, missing_count = 3 WHERE boot = :boot",
        boot=books.boot,
    )
    await books.sql(
        "INSERT INTO journal_gap VALUES (:gateway, :boot, 5, 7, 'damaged')",
        gateway=books.gateway_id,
        boot=books.boot,
    )
    (finding,) = (await books.found())["REC-1"]
    assert finding["size"] == 3
    assert finding["subject"] == f"{books.gateway_id}/{books.boot}"
    assert "5 to 7" in finding["what"]


async def test_rec_1_a_letter_that_waits(books: Any) -> None:
    """The request and its tokens; once resolved it is no finding."""
    refused = JournaledRecord(a_record(), books.gateway_id, books.boot, 99)
    async with books.engine.begin() as db:
        await bury(db, [_letter(refused, "23514 a_check")])
    await books.sql(
        "UPDATE journal_watermark SET seq = seq + 1, ended_count = ended_count + 1"
        " WHERE boot = :boot",
        boot=books.boot,
    )
    found = await books.found()
    assert named(found["REC-1"]) == [(str(refused.record.request_id), TOKENS, "tokens")]


async def life(
    books: Any, *, admits: Sequence[Admitted] = (), ends: Sequence[UsageRecord] = ()
) -> None:
    """A life of its gateway, all of which is shipped, and which leaves open what does not end."""
    journal = await Journal.open(books.directory)
    shipper = Shipper(books.engine, journal)
    shipper.start()
    await asyncio.gather(*(journal.admitted(each) for each in admits))
    await asyncio.gather(*(journal.ended(each) for each in ends))
    assert await shipper.drain(DRAIN_MS)
    await shipper.stop()
    await journal.close()
    books.boot = journal.boot
    await books.roll_up()


async def lose(books: Any, numbers: int) -> None:
    """Its disk and all copies are lost, with so many numbers that were never shipped; nothing was
    open."""
    await books.sql(
        "INSERT INTO gateway_seen (gateway_id, boot, durable_seq, shipped_seq, open_count, seen_at)"
        " SELECT gateway_id, boot, seq + :numbers, seq, 0, now() - interval '10 minutes'"
        " FROM journal_watermark WHERE boot = :boot",
        boot=books.boot,
        numbers=numbers,
    )


async def test_rec_1_a_disk_that_is_lost_after_a_crash(books: Any) -> None:
    """What was open at the crash was ended by the next life, and is not taken for open since."""
    await life(books, admits=[an_admission() for _ in range(6)])
    await life(books)
    assert await books.found() == {}
    await lose(books, 8)
    assert named((await books.found())["REC-1"]) == [(None, 4, "requests")]


async def test_rec_1_a_row_whose_own_account_came_excuses_no_other(books: Any) -> None:
    """Five were told by others and, too late, by their journal or, one of them, past it: of what is
    lost later they explain nothing. One of which the gateway never told still does."""
    admissions = [an_admission() for _ in range(5)]
    for admission in admissions:
        reaped = a_record(admission, final=True, usage_flags=("reaped",))
        await write(books.engine, reaped, books.gateway_id)
    past, *ended = [a_record(each) for each in admissions]
    assert await store_spare(books.engine, [JournaledRecord(past, books.gateway_id)]) == 0
    await life(books, admits=admissions, ends=ended)
    view = await books.reconcile()
    assert view["ok"]
    assert terms(view, "REC-1")["told_by_others"] == 0
    await lose(books, 8)
    assert named((await books.found())["REC-1"]) == [(None, 4, "requests")]
    await write(books.engine, a_record(usage_flags=("reaped",)), books.gateway_id)
    await books.roll_up()
    assert named((await books.found())["REC-1"]) == [(None, 3, "requests")]


async def test_rec_1_a_gateway_that_is_gone_with_its_disk(books: Any) -> None:
    """Of five numbers that never came, with one request more open at the end: three admissions and
    two ends, so three requests of which nobody told. A row that another gateway wrote in its place
    explains one."""
    await books.sql(
        "INSERT INTO gateway_seen (gateway_id, boot, durable_seq, shipped_seq, open_count, seen_at)"
        " SELECT gateway_id, boot, seq + 5, seq, 1, now() - interval '10 minutes'"
        " FROM journal_watermark WHERE boot = :boot",
        boot=books.boot,
    )
    assert named((await books.found())["REC-1"]) == [(None, 3, "requests")]
    await write(books.engine, a_record(usage_flags=("reaped",), final=False), books.gateway_id)
    assert named((await books.found())["REC-1"]) == [(None, 2, "requests")]
    await books.sql("UPDATE gateway_seen SET seen_at = now()")
    assert "REC-1" not in await books.found()


async def test_rec_1_a_disk_that_was_lost_is_found_in_its_own_period(books: Any) -> None:
    """And not for ever."""
    await books.sql(
        "INSERT INTO gateway_seen (gateway_id, boot, durable_seq, shipped_seq, open_count, seen_at)"
        " SELECT gateway_id, boot, seq + 5, seq, 1, now() - interval '2 days'"
        " FROM journal_watermark WHERE boot = :boot",
        boot=books.boot,
    )
    view = await books.reconcile()
    assert view["ok"]
    assert terms(view, "REC-1")["lost_before"] == 5
    books.since -= timedelta(days=2)
    assert named((await books.found())["REC-1"]) == [(None, 3, "requests")]


async def test_rec_1_a_row_by_another_way_hides_none_that_is_gone(books: Any) -> None:
    """Whether another gateway wrote it or this one did, past its journal."""
    for flags in (("sent_directly",), ("reaped",)):
        await write(books.engine, a_record(usage_flags=flags), books.gateway_id)
    await books.roll_up()
    assert await books.found() == {}
    lost = books.records[1].request_id
    for table in ("usage_record", "usage_attempt"):
        await books.sql(f"DELETE FROM {table} WHERE request_id = :id", id=lost)
    await books.roll_up()
    assert named((await books.found())["REC-1"]) == [(None, 1, "usage records")]


async def test_rec_1_an_end_whose_request_has_a_row_by_another_way(books: Any) -> None:
    """It was sent past a full disk, and the disk took it later, whole or as lost: it has no row of
    its own, which is known, and REC-7 compares it with no other's. Shipped again it counts once."""
    healed, lost = a_record(), a_record()
    for record in (healed, lost):
        await write(books.engine, record, books.gateway_id)
    ends = (healed, msgspec.structs.replace(lost, outcome=Outcome.GATEWAY_LOST, billable=False))
    (before,) = [mark for boot, mark in (await watermarks(books)).items() if boot == books.boot]
    shipment = Shipment(
        gateway_id=books.gateway_id,
        boot=books.boot,
        rows=[
            JournaledRecord(end, books.gateway_id, books.boot, before.seq + number)
            for number, end in enumerate(ends, 1)
        ],
        letters=[],
        before=before,
        after=before._replace(seq=before.seq + 2, ended_count=before.ended_count + 2),
    )
    assert await store(books.engine, shipment) == 0
    assert await replay(books.engine, shipment.rows) == []
    await books.roll_up()
    view = await books.reconcile()
    assert view["ok"]
    assert terms(view, "REC-1")["told_after_finality"] == 2


async def watermarks(books: Any) -> dict[int, Watermark]:
    async with books.engine.connect() as db:
        return await load_watermarks(db, books.gateway_id)


async def test_rec_1_a_letter_that_was_resolved_without_a_row(books: Any) -> None:
    """It proved to be an admission, say, which was counted as an end: no finding that nobody can
    resolve. One whose row came counts by its row."""
    await books.sql(
        "UPDATE journal_watermark SET seq = seq + 2, ended_count = ended_count + 2"
        " WHERE boot = :boot",
        boot=books.boot,
    )
    row = JournaledRecord(a_record(), books.gateway_id, books.boot, 5)
    async with books.engine.begin() as db:
        for seq in (5, 6):
            source = f"{books.boot}:{seq}"
            await bury(db, [DeadLetter(books.gateway_id, source, None, "unreadable", b"x")])
        await insert_batch(db, [row])
    await books.roll_up()
    await books.sql("UPDATE usage_dead_letter SET resolved_at = now()")
    view = await books.reconcile()
    assert view["ok"]
    assert terms(view, "REC-1")["resolved_without_row"] == 1


async def test_rec_1_rows_that_an_older_release_sent(books: Any) -> None:
    """It sent two ends past a full disk, died, and its journal told them as lost, of which it kept
    nothing: in order. A third end without a row is not."""
    for _ in range(2):
        await write(books.engine, a_record(), books.gateway_id)
    told = (
        "UPDATE journal_watermark SET seq = seq + :ends, ended_count = ended_count + :ends"
        " WHERE boot = :boot"
    )
    await books.sql(told, boot=books.boot, ends=2)
    await books.roll_up()
    view = await books.reconcile()
    assert view["ok"]
    assert terms(view, "REC-1")["sent_by_older"] == 2
    await books.sql(told, boot=books.boot, ends=1)
    assert named((await books.found())["REC-1"]) == [(None, 1, "usage records")]

"""`weir dead-letters`: a bill that waits is listed, tried again and never doubled."""

import asyncio
from typing import Any

import msgspec
from sqlalchemy import text
from usage_examples import a_record, an_admission
from weir_command import Weir

from billing.domain.usage_record import UsageRecord
from billing.postgres.dead_letters import DeadLetter, bury
from billing.postgres.retries import retry
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.journal.entries import encode_body, encode_entry
from gateway.adapters.postgres import async_engine
from gateway.commands.dead_letters import _read


def letter_of(record: UsageRecord, source: str) -> DeadLetter:
    """A record that some Postgres refused, as the shipper buries it."""
    return DeadLetter(
        "gw-1", source, record.request_id, "23514 a_check", msgspec.msgpack.encode(record)
    )


def on_database(url: str, *statements: str) -> list[list[tuple[Any, ...]]]:
    """The rows of each statement."""

    async def run() -> list[list[tuple[Any, ...]]]:
        engine = async_engine(url, pooled=False)
        async with engine.begin() as db:
            found = [await db.execute(text(each)) for each in statements]
            rows = [[tuple(row) for row in each] if each.returns_rows else [] for each in found]
        await engine.dispose()
        return rows

    return asyncio.run(run())


def bury_all(url: str, *letters: DeadLetter, rows: tuple[JournaledRecord, ...] = ()) -> None:
    """These letters, and rows that are there already."""

    async def run() -> None:
        engine = async_engine(url, pooled=False)
        async with engine.begin() as db:
            await bury(db, letters)
            await insert_batch(db, rows)
        await engine.dispose()

    asyncio.run(run())


PLACES = "SELECT request_id, gateway_id, boot, seq FROM usage_record ORDER BY seq"
OPEN = "SELECT source, retries FROM usage_dead_letter WHERE resolved_at IS NULL ORDER BY id"


def test_what_waits_is_listed_by_page(weir: Weir, database_url: str) -> None:
    """The oldest first, without the payload."""
    records = [a_record() for _ in range(3)]
    bury_all(database_url, *(letter_of(each, f"7:{n}") for n, each in enumerate(records, 1)))
    first = weir.json("dead-letters", "list", "--limit", "2")
    rest = weir.json("dead-letters", "list", "--cursor", first["next_cursor"])
    items = [*first["items"], *rest["items"]]
    assert rest["next_cursor"] is None
    assert [item["request_id"] for item in items] == [str(each.request_id) for each in records]
    assert [item["source"] for item in items] == ["7:1", "7:2", "7:3"]
    assert not any("payload" in item for item in items)
    assert "23514 a_check" in weir.ok("dead-letters", "list")
    weir.refused("dead-letters", "list", "--cursor", "x")


def test_one_that_is_taken_now_is_a_row_once(weir: Weir, database_url: str) -> None:
    """With its place in the journal; a second time changes nothing, and is no failure."""
    record, spare, known = a_record(), a_record(), a_record()
    bury_all(
        database_url,
        letter_of(record, "7:3"),
        letter_of(spare, f"spare:{spare.request_id}"),
        letter_of(known, "7:9"),
        rows=(JournaledRecord(known, "gw-1", 7, 9),),
    )
    for resolved in (3, 0):
        view = weir.json("dead-letters", "retry", "all")
        assert view == {"resolved": resolved, "refused": []}
        assert on_database(database_url, PLACES, OPEN) == [
            [
                (record.request_id, "gw-1", 7, 3),
                (known.request_id, "gw-1", 7, 9),
                (spare.request_id, "gw-1", None, None),
            ],
            [],
        ]
    assert weir.json("dead-letters", "list")["items"] == []
    assert len(weir.json("dead-letters", "list", "--resolved")["items"]) == 3


def test_one_that_is_refused_again_stays(weir: Weir, database_url: str) -> None:
    """With this time's reason, counted; the others go on. Exit status 1."""
    bad, good = a_record(output_tokens=-1), a_record()
    bury_all(database_url, letter_of(bad, "7:1"), letter_of(good, "7:2"))
    for retries in (1, 2):
        status, out, _ = weir.run("dead-letters", "retry", "all", "--json")
        view = msgspec.json.decode(out)
        assert (status, view["resolved"]) == (1, 2 - retries)
        assert [each["reason"] for each in view["refused"]] == ["23514 usage_record_counts_check"]
        assert on_database(database_url, OPEN) == [[("7:1", retries)]]
    assert on_database(database_url, PLACES) == [[(good.request_id, "gw-1", 7, 2)]]


def test_one_is_tried_by_its_number(weir: Weir, database_url: str) -> None:
    """The others wait; a number that none has is an error."""
    bury_all(database_url, letter_of(a_record(), "7:1"), letter_of(a_record(), "7:2"))
    second = weir.json("dead-letters", "list")["items"][1]["id"]
    for resolved in (1, 0):
        found = weir.json("dead-letters", "retry", str(second))
        assert found == {"resolved": resolved, "refused": []}
    assert on_database(database_url, OPEN) == [[("7:1", 0)]]
    weir.refused("dead-letters", "retry", "99", status=1)
    weir.refused("dead-letters", "retry", "soon")


def test_what_no_release_could_read_is_read_as_the_journals_entry(
    weir: Weir, database_url: str
) -> None:
    """An end is a row, an admission none, and what this release cannot read waits on."""
    record = a_record()
    ended = encode_entry("ended", 4, encode_body(record))
    admitted = encode_entry("admitted", 5, encode_body(an_admission()))
    unreadable = [
        DeadLetter("gw-1", f"7:{seq}", None, "unreadable", payload)
        for seq, payload in ((4, ended), (5, admitted), (6, b"\xc1"))
    ]
    bury_all(database_url, *unreadable)
    status, out, _ = weir.run("dead-letters", "retry", "all", "--json")
    assert (status, msgspec.json.decode(out)["resolved"]) == (1, 2)
    assert on_database(database_url, PLACES, OPEN) == [
        [(record.request_id, "gw-1", 7, 4)],
        [("7:6", 1)],
    ]


def test_two_that_try_at_once_take_turns(weir: Weir, database_url: str) -> None:
    """More letters than one transaction takes: each is resolved by one of them, all are rows."""
    records = [a_record() for _ in range(230)]
    bury_all(database_url, *(letter_of(each, f"7:{n}") for n, each in enumerate(records, 1)))

    async def both() -> int:
        engine = async_engine(database_url, pooled=False)
        done = await asyncio.gather(*(retry(engine, _read) for _ in range(2)))
        await engine.dispose()
        return sum(map(len, done))

    assert asyncio.run(both()) == 230
    assert on_database(database_url, "SELECT count(*) FROM usage_record", OPEN) == [[(230,)], []]

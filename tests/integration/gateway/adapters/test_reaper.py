"""Gateways that are gone: their copies become rows, once, and the rows final in time."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from reaping import (
    DAY_MS,
    GONE_MS,
    Graves,
    Row,
    a_gateway,
    died,
    graves,
    hours_ago,
    journal_of,
    reaped,
)
from servers import flush
from shipping import DRAIN_MS, query
from sqlalchemy import text
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.adapters.second_copy import copies_key
from gateway.domain.presence import Heartbeat

LOST: Row = ("gateway_lost", False, 0, 0, "estimated", ["end_unknown", "reaped"])
ENDED: Row = ("completed", False, 12, 20, "engine_final", ["reaped"])
OWN: Row = ("completed", True, 12, 20, "engine_final", [])


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


async def test_what_a_gateway_that_is_gone_had_becomes_rows(system: Graves) -> None:
    """INV-5: ends as they were, what ran as lost with what was last told of it; one that was seen
    within the minute is left alone, and so is the reaper's own."""
    gone, here = a_gateway(), a_gateway()
    ended, running, silent = (an_admission(hours_ago(0.1)) for _ in range(3))
    await system.copied(gone, a_record(ended), running, silent, told={running.request_id: (12, 7)})
    await system.copied(here, an_admission())
    await system.copied("gw-own", an_admission())
    seen_ms = await system.last_seen(gone, GONE_MS, Heartbeat(1, 4, 2, 0))
    await system.last_seen(here, GONE_MS - 20_000, Heartbeat(1, 1, 1, 0))
    await system.last_seen("gw-own", 2 * GONE_MS, Heartbeat(1, 1, 1, 0))
    await reaped(system.reaper())
    assert await system.rows() == {
        ended.request_id: ENDED,
        running.request_id: ("gateway_lost", False, 12, 7, "counted", ["end_unknown", "reaped"]),
        silent.request_id: LOST,
    }
    assert system.ends == [a_record(ended)]
    lost = "SELECT ended_at = to_timestamp(%d / 1000.0), billable, gateway_id FROM usage_record"
    found = await query(system.engine, lost % seen_ms + " WHERE outcome = 'gateway_lost'")
    assert set(found) == {(True, False, gone)}
    attempts = await query(system.engine, "SELECT request_id FROM usage_attempts")
    assert attempts == [(ended.request_id,)]
    # The copies stay, for the journal's own account.
    assert await system.copies.names(gone) == {each.request_id for each in (ended, running, silent)}


async def test_any_number_of_reapers_write_the_same_rows(system: Graves) -> None:
    """M05: four at once, each with the turn, over copies of three gateways; again: nothing."""
    expected: dict[UUID, Row] = {}
    for _ in range(3):
        gone = a_gateway()
        ended, running = [an_admission() for _ in range(40)], [an_admission() for _ in range(40)]
        await system.copied(gone, *map(a_record, ended), *running)
        await system.last_seen(gone, 2 * GONE_MS, Heartbeat(1, 120, 40, 0))
        expected |= {each.request_id: ENDED for each in ended}
        expected |= {each.request_id: LOST for each in running}
    reapers = [system.reaper(f"gw-own-{number}") for number in range(4)]
    await asyncio.gather(*(reaped(reaper) for reaper in reapers))
    assert await system.rows() == expected
    assert sum(reaper.written for reaper in reapers) == len(expected)
    written = "SELECT request_id, xmin::text, recorded_at FROM usage_record ORDER BY 1"
    before = await query(system.engine, written)
    await reaped(*(system.reaper() for _ in range(2)))
    assert await query(system.engine, written) == before


async def test_one_at_a_time_has_the_turn(system: Graves) -> None:
    """Whoever has it reaps; the others look on, until it gives the turn back."""
    gone, request = a_gateway(), an_admission()
    first, second = system.one_of_many("gw-1"), system.one_of_many("gw-2")
    await first.turn()
    await system.copied(gone, request)
    await system.last_seen(gone, 2 * GONE_MS, Heartbeat(1, 1, 1, 0))
    await reaped(second)
    assert await system.rows() == {}
    await first.stop()
    await reaped(second)
    assert await system.rows() == {request.request_id: LOST}


async def test_who_was_away_itself_judges_nobody_at_first(system: Graves) -> None:
    """A store that was away for a minute makes everybody look gone: they have a turn's time to say
    that they are here."""
    here, request = a_gateway(), an_admission()
    await system.copied(here, request)
    await system.last_seen(here, 2 * GONE_MS, Heartbeat(1, 1, 1, 0))
    reaper = system.reaper()
    await reaper.turn()
    assert await system.rows() == {}
    await system.gateways.tell(here, 0, Heartbeat(1, 1, 1, 0))
    await reaper.turn()
    assert await system.rows() == {}


async def test_the_journals_own_account_replaces_it_once(system: Graves, tmp_path: Path) -> None:
    """INV-5: the gateway comes back on its disk; each row is replaced by its own, with its place in
    the journal, and a reaper that looks at the copies after that changes nothing."""
    ended, running = an_admission(), an_admission()
    gateway_id = await died(system, tmp_path, ended, running, ended=1)
    await reaped(system.reaper())
    assert await system.rows() == {ended.request_id: ENDED, running.request_id: LOST}
    async with journal_of(system, tmp_path) as (journal, shipper):
        assert journal.gateway_id == gateway_id
        assert await shipper.drain(DRAIN_MS)
    own = {
        ended.request_id: OWN,
        running.request_id: ("gateway_lost", True, 0, 0, "estimated", []),
    }
    assert await system.rows() == own
    await reaped(system.reaper())
    assert await system.rows() == own
    places = await query(system.engine, "SELECT boot IS NULL, seq FROM usage_record ORDER BY boot")
    assert places == [(False, 3), (False, 1)]
    assert await query(system.engine, "SELECT * FROM usage_late") == []


async def test_what_is_not_provisional_any_more_is_off_the_list(
    system: Graves, tmp_path: Path
) -> None:
    """Once the gateway is back and has told of its requests itself; those of others stay on it. A
    boot that it has shipped and that is over is not remembered."""
    requests = [an_admission() for _ in range(5)]
    gateway_id = await died(system, tmp_path, *requests, ended=3)
    other, request = a_gateway(), an_admission()
    await system.copied(other, request)
    await system.last_seen(other, GONE_MS, Heartbeat(1, 1, 1, 0))
    await reaped(system.reaper())
    listed = "SELECT gateway_id, count(*) FROM usage_provisional GROUP BY 1"
    assert dict(map(tuple, await query(system.engine, listed))) == {gateway_id: 5, other: 1}
    async with journal_of(system, tmp_path) as (journal, shipper):
        assert await shipper.drain(DRAIN_MS)
        boot = journal.boot
        await system.gateways.tell(gateway_id, 0, Heartbeat(boot, 2, 0, 2))
        await reaped(system.reaper())
    assert await query(system.engine, listed) == [(other, 1)]
    seen = "SELECT gateway_id, boot FROM gateway_seen"
    assert set(map(tuple, await query(system.engine, seen))) == {(gateway_id, boot), (other, 1)}


async def test_adoption_and_reaper_at_once_make_one_final_row(
    system: Graves, tmp_path: Path
) -> None:
    """Whoever comes first: each request has one row, and that is the journal's."""
    requests = [an_admission() for _ in range(300)]
    await died(system, tmp_path, *requests, ended=250)

    async def shipped() -> None:
        async with journal_of(system, tmp_path) as (_, shipper):
            assert await shipper.drain(DRAIN_MS)

    await asyncio.gather(shipped(), *(reaped(system.reaper(f"gw-{n}")) for n in range(3)))
    rows = await system.rows()
    assert [rows[each.request_id] for each in requests[:250]] == [OWN] * 250
    assert {rows[each.request_id][:2] for each in requests[250:]} == {("gateway_lost", True)}
    assert len(rows) == 300
    ended = await query(system.engine, "SELECT sum(ended_count) FROM journal_watermark")
    placed = await query(system.engine, "SELECT count(*) FROM usage_record WHERE boot IS NOT NULL")
    assert ended == placed == [(300,)]


async def test_an_end_takes_the_place_of_what_is_not_known(system: Graves) -> None:
    """A gateway came back for a moment, its request ended, and it died for good: the provisional
    row says so; never the other way round."""
    gone, request = a_gateway(), an_admission()
    await system.copied(gone, request)
    await system.last_seen(gone, GONE_MS, Heartbeat(1, 1, 1, 0))
    reaper = system.reaper()
    await reaped(reaper)
    assert await system.rows() == {request.request_id: LOST}
    await system.copied(gone, a_record(request))
    await reaper.turn()
    assert await system.rows() == {request.request_id: ENDED}
    await system.ask("DEL", copies_key(gone))
    await system.copied(gone, request)
    await reaper.turn()
    assert await system.rows() == {request.request_id: ENDED}


async def test_a_lost_disk_loses_no_row_and_leaves_nothing_behind(
    system: Graves, tmp_path: Path
) -> None:
    """M22: rows from copies, final after a day, then the gateway is forgotten; what Postgres
    refused waits for a person and holds nothing up."""
    ended, running = an_admission(), an_admission()
    refused = an_admission(admitted_at_ms=1)
    gateway_id = await died(system, tmp_path, ended, running, refused, ended=1)
    shutil.rmtree(tmp_path)
    await reaped(system.reaper())
    rows = {ended.request_id: ENDED, running.request_id: LOST}
    assert await system.rows() == rows
    letters = await query(system.engine, "SELECT gateway_id, request_id FROM usage_dead_letter")
    assert letters == [(gateway_id, refused.request_id)]
    assert await system.copies.names(gateway_id)
    await query_and_commit(
        system, "UPDATE usage_provisional SET made_at = made_at - interval '24 hours'"
    )
    assert (await query(system.engine, "SELECT closed_at FROM gateway_seen")) == [(None,)]
    await system.gone_for(gateway_id, DAY_MS)
    await reaped(system.reaper())
    assert await system.rows() == {
        request_id: (outcome, True, *rest) for request_id, (outcome, _, *rest) in rows.items()
    }
    assert await system.keys() == set()
    assert gateway_id not in await system.gateways.standings()
    seen = await query(system.engine, "SELECT durable_seq, closed_at IS NULL FROM gateway_seen")
    assert seen == [(4, False)]


async def test_with_disk_and_redis_lost_nothing_is_invented(
    system: Graves, redis_url: str, tmp_path: Path
) -> None:
    """No row, and Postgres says how far that journal was; after a day it is waited for no more."""
    gateway_id = await died(system, tmp_path, an_admission(), an_admission(), ended=1, ago_ms=0)
    await reaped(system.reaper())
    shutil.rmtree(tmp_path)
    flush(redis_url)
    await system.gateways.ask()
    await query_and_commit(system, "UPDATE gateway_seen SET seen_at = seen_at - interval '1 hour'")
    reaper = system.reaper()
    await reaped(reaper)
    assert (await system.rows(), reaper.gone) == ({}, 1)
    seen = "SELECT gateway_id, durable_seq, open_count, closed_at IS NULL FROM gateway_seen"
    assert await query(system.engine, seen) == [(gateway_id, 3, 1, True)]
    await query_and_commit(system, "UPDATE gateway_seen SET seen_at = seen_at - interval '1 day'")
    await reaper.turn()
    assert await system.rows() == {}
    assert await query(system.engine, seen) == [(gateway_id, 3, 1, False)]
    await reaper.turn()
    assert reaper.gone == 0


async def test_one_that_had_shipped_all_is_forgotten_at_once(
    system: Graves, tmp_path: Path
) -> None:
    """Redis does not grow with each gateway that ever was; one with something open is kept."""
    requests = [an_admission() for _ in range(5)]
    gateway_id = await died(system, tmp_path, *requests, ended=5)
    other = await died(system, tmp_path / "other", an_admission())
    async with journal_of(system, tmp_path) as (_, shipper):
        assert await shipper.drain(DRAIN_MS)
    assert await system.keys() == {copies_key(gateway_id), copies_key(other)}
    await reaped(system.reaper())
    assert await system.keys() == {copies_key(other)}
    assert set(await system.gateways.standings()) == {other}


async def test_a_copy_of_another_release_is_kept(system: Graves) -> None:
    """What cannot be read here is never removed."""
    gone = a_gateway()
    await system.copied(gone, a_record())
    await system.ask("HSET", copies_key(gone), an_admission().request_id.hex, "Z?")
    await system.last_seen(gone, 2 * DAY_MS, Heartbeat(1, 2, 0, 0))
    reaper = system.reaper(final_after_ms=0)
    await reaped(reaper)
    await reaper.turn()
    assert [row[1] for row in (await system.rows()).values()] == [True]
    assert len(await system.copies.names(gone)) == 2


async def test_what_a_journal_says_after_a_day_changes_no_row(
    system: Graves, tmp_path: Path
) -> None:
    """The row is final; the account is kept beside it with its difference, once, also where it is
    shipped again, and what is not late goes its usual way."""
    lost, known, fresh = an_admission(), an_admission(), an_admission()
    gateway_id = await died(system, tmp_path, known, lost, ended=1)
    reaper = system.reaper(final_after_ms=0)
    await reaped(reaper)
    rows = await system.rows()
    assert {row[1] for row in rows.values()} == {True}
    async with journal_of(system, tmp_path) as (journal, shipper):
        await journal.admitted(fresh)
        await journal.ended(a_record(fresh))
        assert await shipper.drain(DRAIN_MS)
    assert await system.rows() == {**rows, fresh.request_id: OWN}
    late = (
        "SELECT request_id, gateway_id, seq, outcome, prompt_tokens, output_tokens"
        " FROM usage_late ORDER BY boot"
    )
    expected = [
        (known.request_id, gateway_id, 3, "completed", 0, 0),
        (lost.request_id, gateway_id, 1, "gateway_lost", 0, 0),
    ]
    assert await query(system.engine, late) == expected
    await query_and_commit(system, "DELETE FROM journal_watermark")
    async with journal_of(system, tmp_path) as (_, shipper):
        assert await shipper.drain(DRAIN_MS)
    assert await query(system.engine, late) == expected
    assert await system.rows() == {**rows, fresh.request_id: OWN}


async def test_the_difference_of_a_late_account_is_exact(system: Graves, tmp_path: Path) -> None:
    """Account minus row, tokens and money; the account itself can be read."""
    request = an_admission(currency="USD")
    gateway_id = await died(system, tmp_path / "a", request)
    await system.copies.tell_progress(gateway_id, {request.request_id: (12, 7)})
    await reaped(system.reaper(final_after_ms=0))
    account = a_record(request, cost_pico=5_000, list_cost_pico=5_000, currency="USD")
    async with journal_of(system, tmp_path / "b") as (journal, shipper):
        await journal.admitted(request)
        await journal.ended(account)
        assert await shipper.drain(DRAIN_MS)
    ((prompt, output, cost, payload),) = await query(
        system.engine, "SELECT prompt_tokens, output_tokens, cost_pico, payload FROM usage_late"
    )
    assert (prompt, output, cost) == (0, 13, 5_000)
    assert msgspec.msgpack.decode(payload, type=UsageRecord) == account
    (row,) = (await system.rows()).values()
    assert row[:5] == (Outcome.GATEWAY_LOST, True, 12, 7, "counted")


async def query_and_commit(system: Graves, statement: str) -> None:
    """Change what lies there."""
    async with system.engine.begin() as db:
        await db.execute(text(statement))

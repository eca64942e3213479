"""Reconciliation by itself: what is due is looked at once, by one gateway, and shown by all."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.rollups import roll_up
from gateway.adapters import reconciling
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_journals import JournalFiles
from gateway.adapters.reconciling import Reconciling

LATER = timedelta(minutes=16)


def gateway(books: Any, *, again_s: float = 0.0, later: timedelta = LATER) -> Reconciling:
    """One that believes it to be so much later: the quarter of the books has closed."""
    return Reconciling(
        books.engine,
        Reconciler(books.engine, None),
        [JournalFiles(books.directory, books.gateway_id)],
        now=lambda: datetime.now(UTC) + later,
        again_s=again_s,
    )


async def kinds(books: Any) -> list[tuple[str, int]]:
    """Kind and findings of each run there was."""
    return [tuple(row) for row in await books.query("SELECT kind, findings FROM reconcile_run")]


async def test_a_closed_quarter_is_looked_at_and_a_day_once(books: Any) -> None:
    """Nothing is found; the day before is not looked at twice. A later look takes the place of the
    one before."""
    one = gateway(books)
    await one.turn()
    await one.turn()
    assert sorted(await kinds(books)) == [("day", 0), ("quarter", 0)]
    assert set(one.findings) == {f"REC-{number}" for number in range(1, 8)}
    assert not one.has_findings
    replayed = await books.query(
        "SELECT c->'terms'->>'replayed' FROM reconcile_run, jsonb_array_elements(verdicts) AS c"
        " WHERE kind = 'quarter' AND c->>'check' = 'REC-7'"
    )
    assert replayed == [("6",)]


async def test_what_is_found_is_kept_and_shown_by_every_gateway(books: Any) -> None:
    """Until a later run finds nothing."""
    bad = books.records[0]
    await books.sql(
        "UPDATE usage_record SET billable = false WHERE request_id = :id", id=bad.request_id
    )
    await books.roll_up()
    one, other = gateway(books), gateway(books, again_s=60.0)
    await one.turn()
    await other.turn()
    assert one.findings == other.findings
    assert {name: count for name, count in other.findings.items() if count} == {
        "REC-6": 1,
        "REC-7": 1,
    }
    assert other.has_findings
    kept = await books.query("SELECT check_id, request_id, size FROM reconcile_finding")
    assert sorted(kept) == [("REC-6", bad.request_id, 20), ("REC-7", bad.request_id, 1)]
    assert len([kind for kind, _ in await kinds(books) if kind == "quarter"]) == 1
    await books.sql("UPDATE usage_record SET billable = true")
    await books.roll_up()
    await one.turn()
    assert not one.has_findings


async def test_old_runs_are_forgotten(books: Any) -> None:
    """Of quarters without findings after two days, all others after 90."""
    await books.sql(
        "INSERT INTO reconcile_run (kind, from_at, to_at, started_at, findings, verdicts)"
        " SELECT kind, at, at + interval '15 minutes', at, findings, '[]'"
        " FROM (VALUES ('quarter', 0, 1), ('quarter', 0, 3), ('quarter', 2, 89),"
        " ('quarter', 2, 91), ('day', 0, 89), ('day', 0, 91)) AS old (kind, findings, days),"
        " LATERAL (SELECT now() - make_interval(days => days) AS at) AS began"
    )
    await gateway(books).turn()
    kept = await books.query(
        "SELECT kind, findings, extract(day FROM now() - started_at)::int FROM reconcile_run"
        " WHERE started_at < now() - interval '12 hours' ORDER BY id"
    )
    assert kept == [("quarter", 0, 1), ("quarter", 2, 89), ("day", 0, 89)]


async def test_many_gateways_look_once(books: Any) -> None:
    """At once: one does it, the others pass."""
    await asyncio.gather(*(gateway(books, again_s=60.0).turn() for _ in range(3)))
    assert sorted(kind for kind, _ in await kinds(books)) == ["day", "quarter"]


async def test_roll_ups_are_made_until_none_is_marked(books: Any) -> None:
    """More quarters than one transaction takes, and shipped by COPY."""
    await books.serve(60)
    assert await books.query("SELECT count(*) > 0 FROM usage_rollup_dirty") == [(True,)]
    await books.sql(
        "INSERT INTO usage_rollup_dirty (bucket, tenant_id)"
        " SELECT usage_bucket(now() - make_interval(hours => n)), 'acme'"
        " FROM generate_series(1, 120) AS n"
    )
    await gateway(books).roll_up()
    assert await books.query("SELECT count(*) FROM usage_rollup_dirty") == [(0,)]
    assert await books.query("SELECT sum(requests) FROM usage_rollup") == [(66,)]


async def test_making_roll_ups_ends_whatever_is_written_meanwhile(
    books: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of the same quarter is shipped before each time that it is made anew: it is made
    once, and the mark of what came later waits."""
    made: list[int | None] = []

    async def while_shipping(db: AsyncConnection, *, up_to: int | None = None) -> int | None:
        if len(made) < 5:
            made.append(await roll_up(db, up_to=up_to))
            await books.sql("UPDATE usage_record SET queue_ms = queue_ms + 1")
            return made[-1]
        return None

    monkeypatch.setattr(reconciling, "roll_up", while_shipping)
    await books.sql("UPDATE usage_record SET queue_ms = queue_ms + 1")
    await gateway(books).roll_up()
    assert made == [1, 0]
    assert await books.query("SELECT count(*) > 0 FROM usage_rollup_dirty") == [(True,)]


async def test_a_quarter_that_has_not_closed_is_not_looked_at(books: Any) -> None:
    """The run is of the quarter before."""
    await gateway(books, later=timedelta(0)).turn()
    rows = await books.query("SELECT to_at <= now() FROM reconcile_run WHERE kind = 'quarter'")
    assert rows == [(True,)]


async def test_an_empty_period_compares_nothing(books: Any) -> None:
    """And finds nothing."""
    period = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    verdicts = await Reconciler(books.engine, None).run(Scope(period))
    assert all(verdict.ok for verdict in verdicts)

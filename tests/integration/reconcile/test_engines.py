"""REC-3 over a real database: what is late anywhere is no finding."""

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from usage_examples import a_record, an_admission

from billing.domain.reconciliation.findings import Verdict
from billing.domain.reconciliation.ledgers import Account
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.reconciler_engines import reconcile_engines
from gateway.adapters.reconciler_ledgers import Ledger
from gateway.adapters.reconciler_live import Look
from gateway.domain.orphans import lost_record
from gateway.domain.presence import Standing


class Run:
    """A request of ten seconds ago or so on one worker, whose ledger has its sequence."""

    def __init__(self, now_ms: int, *, arrived_ms: int, started_ms: int, ended_ms: int) -> None:
        self.record = a_record(an_admission(now_ms + arrived_ms))
        (attempt,) = self.record.attempts
        self.started_ms, self.ended_ms = now_ms + started_ms, now_ms + ended_ms
        self.account = Account(
            self.record.request_id,
            0,
            1,
            attempt.prompt_tokens,
            attempt.output_tokens,
            self.started_ms,
            self.ended_ms,
        )


class Ledgers:
    """A worker's ledger, and rows of what ran there."""

    def __init__(self, books: Any) -> None:
        self.books = books
        self.now_ms = time.time_ns() // 1_000_000
        self.accounts: list[Account] = []
        self.rows = 0

    async def ran(self, *, arrived_ms: int, started_ms: int, ended_ms: int) -> Run:
        """A request that came, began and ended then, from now; it has a row."""
        run = Run(self.now_ms, arrived_ms=arrived_ms, started_ms=started_ms, ended_ms=ended_ms)
        self.rows += 1
        async with self.books.engine.begin() as db:
            await insert_batch(db, [JournaledRecord(run.record, "gw-of-others", 1, self.rows)])
        await self.books.sql(
            "UPDATE usage_attempt SET worker_id = 'w', usage_source = 'engine_final',"
            " started_at = to_timestamp(:started / 1000.0),"
            " ended_at = to_timestamp(:ended / 1000.0) WHERE request_id = :id",
            id=run.record.request_id,
            started=float(run.started_ms),
            ended=float(run.ended_ms),
        )
        self.accounts.append(run.account)
        return run

    async def counted(self, at_ms: int, tokens: int) -> None:
        """A sample, from now: so many prompt tokens of the worker's first life."""
        await self.books.sql(
            "INSERT INTO engine_turn (worker_id, turn, gateway_id) VALUES ('w', 1, 'gw')"
            " ON CONFLICT DO NOTHING"
        )
        await self.books.sql(
            "INSERT INTO engine_sample (worker_id, turn, life, gateway_id, asked_at, taken_at,"
            " prompt_tokens, output_tokens) SELECT 'w', 1000000 + :number, 1, 'gw', at, at,"
            " :tokens, 0 FROM (SELECT to_timestamp(:at / 1000.0) AS at) AS sampled",
            number=at_ms,
            at=float(self.now_ms + at_ms),
            tokens=tokens,
        )

    async def lost(self, *, arrived_ms: int, seen_ms: int) -> None:
        """A request whose gateway died, and was last seen then, from now."""
        admission = an_admission(self.now_ms + arrived_ms)
        record = lost_record(admission, now_ms=self.now_ms + seen_ms)
        self.rows += 1
        async with self.books.engine.begin() as db:
            await insert_batch(db, [JournaledRecord(record, "gw-of-others", 1, self.rows)])

    async def compared(
        self,
        *,
        since_ms: int = -600_000,
        through_ms: int = 0,
        unsettled: Collection[UUID] | None = (),
    ) -> Verdict:
        """From then on, while a gateway that is there has shipped through another instant."""
        standing = Standing(seen_ms=self.now_ms, through_ms=self.now_ms + through_ms)
        ledger = Ledger("http://w", self.accounts, 0, self.now_ms + 60_000, 0)
        ledgers = [ledger] if self.accounts else []
        async with self.books.engine.connect() as db:
            return await reconcile_engines(
                db,
                datetime.fromtimestamp((self.now_ms + since_ms) / 1000, UTC),
                datetime.now(UTC) + timedelta(hours=1),
                ledgers=ledgers,
                look=Look({"gw": standing}, self.now_ms),
                unsettled=unsettled,
            )


async def test_what_ended_after_the_last_that_is_shipped_is_not_looked_at(books: Any) -> None:
    """A gateway is late: neither accounts nor attempts of later are compared. What is wrong before
    is found, and later once it is not late any more."""
    ledgers = Ledgers(books)
    await ledgers.ran(arrived_ms=-90_000, started_ms=-90_000, ended_ms=-80_000)
    later = await ledgers.ran(arrived_ms=-50_000, started_ms=-50_000, ended_ms=-30_000)
    assert (await ledgers.compared(through_ms=-40_000)).findings == ()
    assert (await ledgers.compared()).findings == ()
    ledgers.accounts.remove(later.account)
    assert (await ledgers.compared(through_ms=-40_000)).findings == ()
    (found,) = (await ledgers.compared()).findings
    assert found.request_id == later.record.request_id


async def test_what_waited_into_a_period_is_of_the_period_before(books: Any) -> None:
    """Its account and its attempt alike."""
    ledgers = Ledgers(books)
    await ledgers.ran(arrived_ms=-90_000, started_ms=-50_000, ended_ms=-40_000)
    await ledgers.ran(arrived_ms=-55_000, started_ms=-50_000, ended_ms=-40_000)
    assert (await ledgers.compared(since_ms=-60_000)).findings == ()


async def test_a_sequence_whose_request_has_a_copy_is_open(books: Any) -> None:
    """Its gateway may be paused, or its end on its way to Postgres; one without is found."""
    ledgers = Ledgers(books)
    await ledgers.ran(arrived_ms=-90_000, started_ms=-90_000, ended_ms=-80_000)
    run = Run(ledgers.now_ms, arrived_ms=-50_000, started_ms=-50_000, ended_ms=-30_000)
    ledgers.accounts.append(run.account)
    verdict = await ledgers.compared(unsettled={run.record.request_id})
    assert verdict.findings == ()
    assert {each.name: each.size for each in verdict.terms}["still_open"] == 32
    assert (await ledgers.compared(unsettled=None)).findings == (), "nobody could be asked"
    (found,) = (await ledgers.compared()).findings
    assert found.request_id == run.record.request_id


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("arrived_ms", "seen_ms", "explains"),
    [
        (-5 * HOUR_MS, -5 * HOUR_MS + 1_000, False),
        (-5 * HOUR_MS, -950_000, False),
        (-5 * HOUR_MS, -850_000, True),
        (-5 * HOUR_MS, -300_000, True),
        (-100_000, -90_000, True),
    ],
)
async def test_only_a_gateway_that_was_lost_then_explains_what_an_engine_counted(
    books: Any, arrived_ms: int, seen_ms: int, explains: bool
) -> None:
    """In the period, or so shortly before it that its engine may still have gone on."""
    ledgers = Ledgers(books)
    await ledgers.counted(-590_000, 100)
    await ledgers.counted(-10_000, 140)
    await ledgers.lost(arrived_ms=arrived_ms, seen_ms=seen_ms)
    verdict = await ledgers.compared(since_ms=-600_000)
    assert [each.size for each in verdict.findings] == ([] if explains else [40])
    sizes = {each.name: each.size for each in verdict.terms}
    assert sizes["gateway_lost_requests"] == (1 if explains else 0)

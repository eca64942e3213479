"""REC-3 over a real database: what is late anywhere is no finding."""

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from usage_examples import a_record, an_admission

from billing.domain.reconciliation.findings import Verdict
from billing.domain.reconciliation.ledgers import Account
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.reconciler_engines import reconcile_engines
from gateway.adapters.reconciler_ledgers import Ledger
from gateway.adapters.reconciler_live import Look
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
        async with self.books.engine.connect() as db:
            return await reconcile_engines(
                db,
                datetime.fromtimestamp((self.now_ms + since_ms) / 1000, UTC),
                datetime.now(UTC) + timedelta(hours=1),
                ledgers=[ledger],
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

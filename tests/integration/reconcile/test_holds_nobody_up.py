"""Reconciliation runs in a gateway that serves: its loop is never held for long."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from billing.domain.reconciliation.findings import Check
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_engines import reconcile_engines

HELD_S_MAX = 0.05
"""CPU time that the loop may be held for between two turns of another task."""
_ATTEMPTS = """
INSERT INTO usage_attempt (request_id, admitted_at, choice, attempt, worker_id, provider,
    started_at, ended_at, outcome, prompt_tokens, output_tokens, usage_source)
SELECT id, uuid_v7_time(id), 0, 1, 'w', 'self', at, at + interval '2 seconds', 'completed', 10, 20,
    'engine_final'
FROM (
    SELECT at, (lpad(to_hex(CAST(extract(epoch FROM at) * 1000 AS bigint)), 12, '0') || '7000'
        || '8' || lpad(to_hex(number), 15, '0'))::uuid AS id
    FROM (
        SELECT number, CAST(:since AS timestamptz) + number * interval '100 milliseconds' AS at
        FROM generate_series(0, :count - 1) AS number
    ) AS timed
) AS named
"""
_RECORDS = """
INSERT INTO usage_record (request_id, admitted_at, tenant_id, api_key_id, model, class, ended_at,
    prompt_tokens, cached_prompt_tokens, output_tokens, reasoning_tokens, sequences, queue_ms,
    outcome, final, usage_source, usage_flags, provider, worker_id, attempts, billable,
    billing_policy, gateway_id)
SELECT request_id, admitted_at, 'acme', 'key-1', 'm', 'interactive', ended_at, 10, 0, 20, 0, 1, 0,
    'completed', true, 'engine_final', '{}', 'self', 'w', 1, true, 1, 'gw'
FROM usage_attempt WHERE worker_id = 'w'
"""
_SAMPLES = """
INSERT INTO engine_sample
    (worker_id, turn, life, gateway_id, asked_at, taken_at, prompt_tokens, output_tokens)
SELECT 'w', number, 1, 'gw', at, at, number * 500, number * 1000
FROM (
    SELECT number, CAST(:since AS timestamptz) + number * interval '5 seconds' AS at
    FROM generate_series(0, :count - 1) AS number
) AS timed
"""


class Beat:
    """Another task of this loop: how much CPU time its thread spent between two of its turns."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def run(self) -> None:
        """For ever."""
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0.001)
            self.worst_s = max(self.worst_s, time.thread_time() - begun)


@asynccontextmanager
async def beating() -> AsyncIterator[Beat]:
    """Beside what is done meanwhile. As in a gateway, what was imported is not gone through."""
    beat = Beat()
    task = asyncio.create_task(beat.run())
    gc.collect()
    gc.freeze()
    try:
        yield beat
    finally:
        gc.unfreeze()
        task.cancel()


async def test_a_busy_hour_does_not_hold_the_loop(books: Any) -> None:
    """36,000 attempts on a worker with 720 samples: whoever serves beside it goes on."""
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    await books.sql(_ATTEMPTS, since=since, count=36_000)
    await books.sql(_SAMPLES, since=since, count=720)
    async with beating() as beat, books.engine.connect() as db:
        verdict = await reconcile_engines(
            db, since, since + timedelta(hours=1), ledgers=(), look=None, unsettled=()
        )
    assert verdict.ok
    sizes = {each.name: each.size for each in verdict.terms}
    assert sizes["recorded"] > 30 * 35_800
    assert beat.worst_s < HELD_S_MAX


async def test_all_checks_of_a_run_let_others_go_on(books: Any) -> None:
    """12,000 records with an attempt each, as the run of a quarter reads them."""
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    await books.sql(_ATTEMPTS, since=since, count=12_000)
    await books.sql(_RECORDS)
    scope = Scope(Period(since, since + timedelta(hours=1)), count_rows=False)
    async with beating() as beat:
        verdicts = await Reconciler(books.engine, None).run(scope)
    (verdict,) = [each for each in verdicts if each.check == Check.ATTEMPTS]
    assert verdict.ok
    assert {each.name: each.size for each in verdict.terms}["records"] == 12_000
    assert beat.worst_s < HELD_S_MAX

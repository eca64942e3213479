"""Usage for tests of the unit cost: a pool's month in a few rows, with all that is odd."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord
from billing.postgres.usage_records import JournaledRecord, insert_batch

SINCE = datetime(2026, 11, 28, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=2)
HOUR = 3_600_000


def at(hours: int, ms: int = 0) -> int:
    """So long after SINCE, in Unix milliseconds."""
    return int(SINCE.timestamp()) * 1000 + hours * HOUR + ms


def an_attempt(begun_ms: int, **changes: object) -> UsageAttempt:
    """On a worker: from 10 ms to 4,050 ms after `begun_ms`."""
    usual: dict[str, object] = {
        "attempt": 1,
        "worker_id": "w1",
        "started_at_ms": begun_ms + 10,
        "ended_at_ms": begun_ms + 4_050,
        "outcome": Outcome.COMPLETED,
        "prompt_tokens": 2_000,
        "output_tokens": 101,
        "cached_prompt_tokens": 1_200,
    }
    return UsageAttempt(**(usual | changes))  # type: ignore[arg-type]


def a_row(
    hours: int,
    tenant: str,
    *,
    attempts: tuple[UsageAttempt, ...] | None = None,
    cost: int | None = 5 * 10**9,
    currency: str | None = "USD",
    **changes: object,
) -> UsageRecord:
    """Admitted so many hours after SINCE: 2,000 tokens in, 1,200 cached, 101 out, the first after
    50 ms and 40 ms each."""
    begun = at(hours)
    usual: dict[str, object] = {
        "tenant_id": tenant,
        "model": "m",
        "first_token_at_ms": begun + 50,
        "ended_at_ms": begun + 4_050,
        "prompt_tokens": 2_000,
        "cached_prompt_tokens": 1_200,
        "output_tokens": 101,
        "cost_pico": cost,
        "list_cost_pico": cost,
        "currency": currency,
        "attempts": (an_attempt(begun),) if attempts is None else attempts,
    }
    return a_record(an_admission(at_ms=begun), **(usual | changes))


def rows() -> list[UsageRecord]:
    """acme's three (one in yen, one of two choices of which one was tried twice), globex's four
    (one hosted after a worker failed, one of an older release and without a price, one of another
    model, one that is not final), and two outside."""
    tried = (
        an_attempt(at(9), outcome=Outcome.WORKER_FAILED, output_tokens=1, ended_at_ms=at(9, 30)),
        an_attempt(at(9), attempt=2, started_at_ms=at(9, 40)),
        an_attempt(at(9), choice=1, cached_prompt_tokens=2_500, output_tokens=1),
    )
    begun = at(30)
    fell_back = (
        an_attempt(begun, outcome=Outcome.WORKER_FAILED, prompt_tokens=0, output_tokens=0,
                   cached_prompt_tokens=None, ended_at_ms=begun + 40),
        an_attempt(begun, attempt=2, worker_id="hosted:x", provider="hosted:x"),
    )  # fmt: skip
    old = (an_attempt(at(31), cached_prompt_tokens=None),)
    return [
        a_row(0, "acme"),
        a_row(9, "acme", attempts=tried, output_tokens=102),
        a_row(33, "acme", cost=700 * 10**12, currency="JPY", request_class="batch"),
        a_row(30, "globex", attempts=fell_back, provider="hosted:x", cost=10**12),
        a_row(31, "globex", attempts=old, cost=None, currency="USD"),
        a_row(33, "globex", model="n"),
        a_row(47, "globex", final=False),
        a_row(-1, "acme"),
        a_row(48, "acme"),
    ]


async def store(postgres: AsyncEngine, records: list[UsageRecord]) -> None:
    """Write them, each in its month's partition."""
    async with postgres.begin() as db:
        await insert_batch(db, [JournaledRecord(each, "g") for each in records])


async def add_workers(db: AsyncConnection, *workers: tuple[str, str]) -> None:
    """Ids and models."""
    for worker, model in workers:
        named = {"id": worker, "model": model}
        await db.execute(
            text(
                "INSERT INTO model (id, context_tokens, max_output_tokens, default_output_tokens,"
                " changed) VALUES (:model, 9, 9, 9, 0) ON CONFLICT DO NOTHING"
            ),
            named,
        )
        await db.execute(
            text(
                "INSERT INTO worker (id, model, url, kind, engine, changed)"
                " VALUES (:id, :model, 'http://w', 'sglang', 'sglang', 0)"
            ),
            named,
        )


async def add_samples(db: AsyncConnection, worker: str, *seen: timedelta) -> None:
    """Of a worker that was seen so long after SINCE, in that order."""
    for turn, after in enumerate(seen, start=1):
        await db.execute(
            text(
                "INSERT INTO engine_sample (worker_id, turn, life, gateway_id, asked_at, taken_at)"
                " VALUES (:worker, :turn, 1, 'g', :at, :at)"
            ),
            {"worker": worker, "turn": turn, "at": SINCE + after},
        )

"""Rows of usage of every kind for tests of what writes them, and what then lies in Postgres."""

from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from billing.postgres.usage_insert import JournaledRecord

ALL = (
    "SELECT to_jsonb(usage_record) - 'recorded_at' FROM usage_record ORDER BY request_id",
    "SELECT to_jsonb(usage_attempt) FROM usage_attempt ORDER BY request_id, choice, attempt",
)


async def everything(engine: AsyncEngine) -> list[list[Any]]:
    """Every column of every row but when it was written."""
    async with engine.connect() as db:
        return [list((await db.execute(text(query))).scalars()) for query in ALL]


def of_every_kind() -> list[JournaledRecord]:
    """Rows with each column set, with each that may be empty empty, and with odd texts."""
    usual = a_record()
    money = {"price_id": 7, "cost_pico": 2**63 - 1, "list_cost_pico": 0, "currency": "KWD"}
    bare = dict.fromkeys(("first_token_at_ms", "ttft_ms", "tpot_us", "itl_max_us", "worker_id"))
    (attempt,) = usual.attempts
    attempts = tuple(
        msgspec.structs.replace(
            attempt,
            choice=choice,
            attempt=number,
            provider="hosted:x",
            provider_request_id="é\t\\N",
            provider_cost_pico=3,
            usage_source=UsageSource.COUNTED,
            cached_prompt_tokens=1,
        )
        for choice, number in ((1, 1), (0, 2), (0, 1), (0, 1))
    )
    records = [
        usual,
        a_record(an_admission(), finish_reason=None, attempts=(), **bare),
        a_record(an_admission(request_class="batch"), usage_flags=("a", "b"), **money),
        a_record(tenant_id='"', attempts=attempts, outcome=Outcome.TIMED_OUT),
        a_record(final=False, model="\\N\t\n"),
    ]
    placed = [JournaledRecord(each, "gw-1", 7, seq) for seq, each in enumerate(records, 1)]
    return [*placed, JournaledRecord(a_record(), "gw-2")]


def told_otherwise(record: UsageRecord) -> UsageRecord:
    """Another account of the same request, a final one."""
    attempts = tuple(msgspec.structs.replace(each, output_tokens=99) for each in record.attempts)
    return msgspec.structs.replace(record, final=True, attempts=attempts)


def many(count: int, **changes: object) -> list[JournaledRecord]:
    """Distinct ones, of one journal."""
    return [
        JournaledRecord(a_record(an_admission(), **changes), "gw-1", 7, n)
        for n in range(1, count + 1)
    ]

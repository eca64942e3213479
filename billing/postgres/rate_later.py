"""Records that had no price, once one holds for the time at which they were admitted.

A record that has a price is never touched. One that has no currency, of a release that knew none,
is rated in its tenant's and has it from then on. What is rated says so in its flags: its journal,
which knows of no price, is no longer its witness for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.price_book import PriceBook
from billing.domain.rating import rate
from billing.domain.usage_record import UsageFlag
from billing.postgres.prices import load_book, unix_ms_of

RATED_LATER = UsageFlag.RATED_LATER.value
"""Flags a record that got its price after it was written."""
ROWS_AT_ONCE = 1_000
_QUARTER = timedelta(minutes=15)
_TURN = 0x57454952_0013
"""Advisory lock: one at a time, so that no two wait for each other's rows."""
_CURRENCY = "coalesce(currency, (SELECT tenant.currency FROM tenant WHERE tenant.id = tenant_id))"
_UNPRICED = f"billable AND final AND price_id IS NULL AND {_CURRENCY} IS NOT NULL"
_OF = f"tenant_id, model, provider, class, {_CURRENCY} AS currency"
_GROUPS = f"""
SELECT DISTINCT bucket, {_OF} FROM usage_rollup WHERE {_UNPRICED} AND bucket <= now()
ORDER BY bucket, tenant_id
"""  # noqa: S608 - names and conditions, from above
_GROUPS_OF_ROWS = f"""
SELECT DISTINCT usage_bucket(admitted_at) AS bucket, {_OF} FROM usage_record
WHERE {_UNPRICED} AND admitted_at <= now() ORDER BY bucket, tenant_id
"""  # noqa: S608 - as above
_ROWS = f"""
SELECT request_id, admitted_at, {_OF}, prompt_tokens, cached_prompt_tokens, output_tokens,
    reasoning_tokens
FROM usage_record
WHERE tenant_id = :tenant AND admitted_at >= :since AND admitted_at < :until
    AND (admitted_at, request_id) > (:after, CAST(:after_id AS uuid)) AND {_UNPRICED}
ORDER BY admitted_at, request_id LIMIT :page
"""  # noqa: S608 - as above
_RATE = """
UPDATE usage_record AS record
SET price_id = sent.price_id, currency = sent.currency,
    cost_pico = sent.cost_pico, list_cost_pico = sent.cost_pico,
    usage_flags = array_append(record.usage_flags, :flag)
FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS timestamptz[]), CAST(:prices AS bigint[]),
    CAST(:costs AS bigint[]), CAST(:currencies AS text[]))
    AS sent (request_id, admitted_at, price_id, cost_pico, currency)
WHERE record.request_id = sent.request_id AND record.admitted_at = sent.admitted_at
    AND record.billable AND record.final AND record.price_id IS NULL
"""
_LEFT = f"""
SELECT {_OF}, count(*) AS requests, min(admitted_at) AS first_at, max(admitted_at) AS last_at
FROM usage_record WHERE billable AND price_id IS NULL
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""  # noqa: S608 - as above


@dataclass(frozen=True)
class Unpriced:
    """Records that somebody is to pay for and that have no price; what is provisional, too. Without
    a currency where neither they nor their tenant have one."""

    tenant_id: str
    model: str
    provider: str
    request_class: str
    currency: str | None
    requests: int
    first_at: datetime
    last_at: datetime


async def rate_rolled_up(engine: AsyncEngine) -> int:
    """Rate what the roll-ups say is unpriced and has a price now, unless somebody does it already;
    returns how many. Costs little where there is none: what still has no price is not read."""
    async with engine.begin() as db:
        if not await db.scalar(text("SELECT pg_try_advisory_xact_lock(:turn)"), {"turn": _TURN}):
            return 0
        quarters, book, now = await _due(db, _GROUPS)
    return await _rate(engine, quarters, book, now)


async def rate_all(engine: AsyncEngine) -> int:
    """Rate every record that is unpriced and has a price now; returns how many. Reads the records
    themselves, so it needs no roll-ups."""
    async with engine.begin() as db:
        quarters, book, now = await _due(db, _GROUPS_OF_ROWS)
    return await _rate(engine, quarters, book, now)


async def load_unpriced(db: AsyncConnection) -> list[Unpriced]:
    """What is unpriced, by whom it is and what it is of."""
    return [Unpriced(*row) for row in await db.execute(text(_LEFT))]


async def _due(
    db: AsyncConnection, groups: str
) -> tuple[Sequence[tuple[datetime, str]], PriceBook, datetime]:
    """Quarters of tenants in which some price may hold, and what is known of prices by now: what is
    admitted later may be at one that is not known yet."""
    now: datetime = (await db.execute(text("SELECT now()"))).scalar_one()
    found = (await db.execute(text(groups))).all()
    if not found:
        return (), PriceBook(), now
    book = await load_book(db)
    return sorted({(row.bucket, row.tenant_id) for row in found if _holds(book, row)}), book, now


def _holds(book: PriceBook, row: Row[tuple[object, ...]]) -> bool:
    """Whether any price of this group holds at some instant of its quarter."""
    since_ms, until_ms = unix_ms_of(row.bucket), unix_ms_of(row.bucket + _QUARTER)
    if book.changes_within(row.model, row.provider, row.currency, since_ms, until_ms):
        return True
    of = row._mapping["class"]  # noqa: SLF001 - SQLAlchemy's public name
    price = book.price_at(
        row.model,
        row.provider,
        row.currency,
        since_ms,
        tenant_id=row.tenant_id,
        request_class=of,
    )
    return price is not None or book.plan_changes_within(row.tenant_id, since_ms, until_ms)


async def _rate(
    engine: AsyncEngine, quarters: Sequence[tuple[datetime, str]], book: PriceBook, now: datetime
) -> int:
    rated = 0
    for bucket, tenant_id in quarters:
        after, after_id = bucket, "00000000-0000-0000-0000-000000000000"
        while True:
            chosen = {
                "tenant": tenant_id,
                "since": bucket,
                "until": min(bucket + _QUARTER, now),
                "after": after,
                "after_id": after_id,
                "page": ROWS_AT_ONCE,
            }
            async with engine.begin() as db:
                await db.execute(text("SELECT pg_advisory_xact_lock(:turn)"), {"turn": _TURN})
                rows = (await db.execute(text(_ROWS), chosen)).all()
                rated += await _rate_page(db, rows, book)
            if len(rows) < ROWS_AT_ONCE:
                break
            after, after_id = rows[-1].admitted_at, str(rows[-1].request_id)
    return rated


async def _rate_page(
    db: AsyncConnection, rows: Sequence[Row[tuple[object, ...]]], book: PriceBook
) -> int:
    found = []
    for row in rows:
        cost = rate(
            book,
            model=row.model,
            provider=row.provider,
            currency=row.currency,
            admitted_at_ms=unix_ms_of(row.admitted_at),
            prompt_tokens=row.prompt_tokens,
            cached_tokens=row.cached_prompt_tokens,
            output_tokens=row.output_tokens,
            reasoning_tokens=row.reasoning_tokens,
            billable=True,
            tenant_id=row.tenant_id,
            request_class=row._mapping["class"],  # noqa: SLF001 - SQLAlchemy's public name
        )
        if cost.price_id is not None:
            found.append(
                (row.request_id, row.admitted_at, cost.price_id, cost.cost_pico, row.currency)
            )
    if not found:
        return 0
    names = ("ids", "times", "prices", "costs", "currencies")
    sent: dict[str, object] = dict(zip(names, map(list, zip(*found, strict=True)), strict=True))
    return (await db.execute(text(_RATE), sent | {"flag": RATED_LATER})).rowcount

"""What may still bring a record of a period: asked of Redis and Postgres before an invoice is
issued."""

import time
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.domain.invoicing.numbering import date_of_issue, number_of, series_of
from billing.postgres.invoices import store_time
from billing.postgres.journals_behind import load_behind
from billing.postgres.prices import unix_ms_of
from billing.postgres.sellers import load_seller
from gateway.adapters.number_past import Owner
from gateway.adapters.reconciler_live import LiveStores
from gateway.domain.tenant import MAX_WAIT_MS
from gateway.serving.ports import LedgerUnavailable

SHIPS_WITHIN_S = 3.0
"""A gateway that can ship has shipped within a second."""


async def find_expected(
    engine: AsyncEngine,
    live: LiveStores | None,
    tenant_id: str,
    end: datetime,
    *,
    longest_wait_ms: int = MAX_WAIT_MS,
) -> list[Blocker]:
    """What may still bring a record of the tenant that was admitted before `end`; where nothing is
    found, all of them are in Postgres by the time this returns. Takes up to some seconds.

    First who has not ended, then who has not shipped: what ends between the two is waited for.
    `longest_wait_ms` is how long a request may wait in a queue: it arrived then, and is admitted
    under its arrival. `live` is None where there is no Redis to ask. Raises what the driver of
    Postgres raises.
    """
    if live is None:
        return [_unknown("there is no Redis to ask which requests run")]
    end_ms = unix_ms_of(end)
    found = []
    try:
        if time.time() * 1000 < end_ms + longest_wait_ms:
            found.append(_open(1, "requests that arrived before its end may still wait"))
        async with engine.connect() as db:
            found += await _of_a_restore(db, live, Owner(tenant_id, end_ms))
        running = await live.open_of(tenant_id, end_ms)
        if running:
            found.append(_open(len(running), f"{len(running)} requests of it have not ended"))
        late = set(await live.not_shipped(SHIPS_WITHIN_S))
        async with engine.connect() as db:
            behind = [each.gateway_id for each in await load_behind(db)]
        # Of one that is there Redis knows more; it always ships a moment later.
        late |= {name for name in behind if not await live.is_there(name)}
    except LedgerUnavailable:
        return [_unknown("Redis does not answer which requests run")]
    found += [
        Blocker(
            obstacle=Obstacle.GATEWAY_BEHIND,
            subject=name,
            what=f"gateway {name} may have records that are not in Postgres",
        )
        for name in sorted(late)
    ]
    return found


async def _of_a_restore(db: AsyncConnection, live: LiveStores, owner: Owner) -> list[Blocker]:
    """What a restored Postgres has lost, by a look at it now: with gateways stopped nobody else has
    looked. Its next number may be given to nobody but who had it."""
    lost = await live.lost_numbers(db)
    if not lost and not await live.is_restored(db):
        return []
    found = [
        Blocker(
            obstacle=Obstacle.GATEWAY_BEHIND,
            subject="postgres",
            what="Postgres was restored from a backup: weir restore check",
        )
    ]
    seller = await load_seller(db)
    if seller is None:
        return found
    issued_on = date_of_issue(await store_time(db), seller.time_zone)
    given = number_of(series_of(seller.invoice_prefix, issued_on), 1)
    for each in lost:
        if not given.startswith(each.series):
            continue
        had = await live.owner_of_number(each.next)
        if had is not None and had != owner:
            until = datetime.fromtimestamp(had.end_ms / 1000, UTC).date()
            what = f"{each.next} is on the invoice of {had.tenant_id} until {until}: issue it again"
            found.append(Blocker(obstacle=Obstacle.NUMBER_GIVEN, subject=each.next, what=what))
    return found


def _open(count: int, what: str) -> Blocker:
    return Blocker(obstacle=Obstacle.STILL_OPEN, subject="requests", count=count, what=what)


def _unknown(why: str) -> Blocker:
    return Blocker(obstacle=Obstacle.GATEWAY_BEHIND, subject="redis", what=why)

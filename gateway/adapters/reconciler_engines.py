"""REC-3: engines' counters, and ledgers where a worker has one, against the attempts there."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.engines import EDGE_MS, LATE_MS, EngineCheck, Meanwhile, Sample
from billing.domain.reconciliation.findings import Check, Verdict, added_up, skipped, terms
from billing.domain.reconciliation.ledgers import Account, Fate, Ran, check_ledger
from billing.postgres.reconcile_engines import (
    Stay,
    count_hosted,
    load_lost,
    load_ran,
    read_samples,
    read_stays,
)
from billing.postgres.reconcile_journals import load_known
from gateway.adapters.reconciler_ledgers import Ledger
from gateway.adapters.reconciler_live import Look
from gateway.domain.request_id import arrival_ms

EDGE = timedelta(milliseconds=EDGE_MS)
LATE = timedelta(milliseconds=LATE_MS)
_EPOCH = datetime.fromtimestamp(0, UTC)


async def reconcile_engines(
    db: AsyncConnection,
    since: datetime,
    until: datetime,
    *,
    ledgers: Sequence[Ledger],
    look: Look | None,
    unsettled: Collection[UUID] | None,
) -> Verdict:
    """The verdict on a period. What has ended is only looked at up to where every gateway has
    shipped; `unsettled` are requests that may live, or whose end Postgres may not have yet; where
    they are not known (None), nothing is found that might be one of them.

    Comparing is done beside the loop and a page at a time; what is kept grows with the samples,
    and with the attempts only where a ledger is given."""
    until = min(until, _shipped_through(look))
    check = EngineCheck()
    async for page in read_samples(db, since, until):
        await asyncio.to_thread(_see, check, page)
    hosted, unknown_cost, unnamed = await count_hosted(db, since, until)
    if not check.has_samples and not ledgers and not hosted:
        return skipped(Check.ENGINES, "no engine was sampled in that time")
    lost = await load_lost(db, since, until)
    until_ms = int(until.timestamp() * 1000)
    opened = {each for each in unsettled or () if arrival_ms(each) < until_ms}
    opened -= await load_known(db, opened)
    found = [Verdict(Check.ENGINES)]
    if check.has_samples:
        async for page in read_stays(db, since - LATE, until):
            await asyncio.to_thread(_add, check, page)
        meanwhile = Meanwhile(len(lost), len(opened), is_known=unsettled is not None)
        found = [await asyncio.to_thread(check.verdict, meanwhile)]
    if unsettled is None:
        opened = {each.request_id for ledger in ledgers for each in ledger.accounts}
    if ledgers:
        ran = await load_ran(db, since - EDGE, until)
        found += [
            await asyncio.to_thread(_of_ledger, ledger, ran, (since, until), lost, opened)
            for ledger in ledgers
        ]
    if hosted:
        names = terms(
            hosted_attempts=hosted, hosted_cost_unknown=unknown_cost, hosted_without_id=unnamed
        )
        found.append(Verdict(Check.ENGINES, names))
    return added_up(Check.ENGINES, found)


def _see(check: EngineCheck, page: Sequence[Row[Any]]) -> None:
    check.see(map(Sample._make, page))


def _add(check: EngineCheck, page: Sequence[Row[Any]]) -> None:
    check.add(map(Stay._make, page))


def _of_ledger(
    ledger: Ledger,
    ran: Sequence[Ran],
    period: tuple[datetime, datetime],
    lost: frozenset[UUID],
    opened: set[UUID],
) -> Verdict:
    """Accounts and attempts of the same requests, as far as both can be known: a ledger up to when
    it was read, either of them up to `until`."""
    since, until = period
    since_ms, until_ms = (int(at.timestamp() * 1000) for at in (since, until))
    accounts = [each for each in ledger.accounts if _is_within(each, since, until)]
    return check_ledger(
        accounts,
        [
            each
            for each in ran
            if since_ms <= arrival_ms(each.request_id) and each.started_at_ms < until_ms
        ],
        _fates(accounts, lost, opened),
        since_ms=max(ledger.since_ms, since_ms),
        until_ms=min(ledger.read_at_ms, until_ms) - EDGE_MS,
        health_tokens=ledger.health_tokens,
    )


def _shipped_through(look: Look | None) -> datetime:
    """The instant through which every gateway that lives has shipped."""
    if look is None:
        return datetime.max.replace(tzinfo=UTC)
    told = [each.through_ms for name, each in look.standings.items() if not look.is_gone(name)]
    if not told:
        return datetime.max.replace(tzinfo=UTC)
    return _EPOCH + timedelta(milliseconds=min(told))


def _is_within(account: Account, since: datetime, until: datetime) -> bool:
    """By the request's arrival; what ended after the last that is shipped is not looked at."""
    at = _EPOCH + timedelta(milliseconds=arrival_ms(account.request_id))
    ended = _EPOCH + timedelta(milliseconds=account.ended_at_ms)
    return since <= at < until and ended < until


def _fates(
    accounts: Sequence[Account], lost: frozenset[UUID], opened: set[UUID]
) -> dict[UUID, Fate]:
    fates: dict[UUID, Fate] = {}
    for each in accounts:
        if each.request_id in lost:
            fates[each.request_id] = Fate.GATEWAY_LOST
        elif each.request_id in opened:
            fates[each.request_id] = Fate.OPEN
    return fates

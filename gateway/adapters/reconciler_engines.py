"""REC-3: engines' counters, and ledgers where a worker has one, against the attempts there."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.engines import EDGE_MS, Meanwhile, check_engines
from billing.domain.reconciliation.findings import Check, Verdict, added_up, skipped, terms
from billing.domain.reconciliation.ledgers import Account, Fate, check_ledger
from billing.postgres.reconcile_engines import count_hosted, load_lost, load_ran, load_samples
from gateway.adapters.reconciler_ledgers import Ledger
from gateway.adapters.reconciler_live import Look
from gateway.domain.request_id import arrival_ms

_EPOCH = datetime.fromtimestamp(0, UTC)


async def reconcile_engines(
    db: AsyncConnection,
    since: datetime,
    until: datetime,
    *,
    ledgers: Sequence[Ledger],
    look: Look | None,
    open_requests: Mapping[UUID, str],
) -> Verdict:
    """The verdict on a period. What has ended is only looked at up to where every gateway has
    shipped; `open_requests` are those that are live."""
    until = min(until, _shipped_through(look))
    samples = await load_samples(db, since, until)
    hosted, unknown_cost, unnamed = await count_hosted(db, since, until)
    if not samples and not ledgers and not hosted:
        return skipped(Check.ENGINES, "no engine was sampled in that time")
    ran = await load_ran(db, since - timedelta(milliseconds=EDGE_MS), until)
    lost = await load_lost(db, since, until)
    until_ms = int(until.timestamp() * 1000)
    opened = {each for each in open_requests if arrival_ms(each) < until_ms}
    first_ms = min((sample.asked_at_ms for sample in samples), default=0)
    verdict = check_engines(
        samples,
        [each for each in ran if first_ms - EDGE_MS < each.ended_at_ms <= until_ms + EDGE_MS],
        Meanwhile(len(lost), len(opened)),
    )
    found = [verdict if samples else Verdict(Check.ENGINES)]
    for ledger in ledgers:
        accounts = [each for each in ledger.accounts if _is_within(each, since, until)]
        fates = _fates(accounts, lost, opened)
        found.append(
            check_ledger(
                accounts,
                [each for each in ran if each.started_at_ms < until_ms],
                fates,
                since_ms=max(ledger.since_ms, int(since.timestamp() * 1000)),
                until_ms=ledger.read_at_ms - EDGE_MS,
                health_tokens=ledger.health_tokens,
            )
        )
    if hosted:
        names = terms(
            hosted_attempts=hosted, hosted_cost_unknown=unknown_cost, hosted_without_id=unnamed
        )
        found.append(Verdict(Check.ENGINES, names))
    return added_up(Check.ENGINES, found)


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

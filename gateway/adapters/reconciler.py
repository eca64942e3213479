"""Reconciliation: reads what the stores, the journals and the engines hold of a period, and has the
pure checks of `billing.domain.reconciliation` compare it. Nothing is changed anywhere."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.reconciliation.attempts import check_attempts
from billing.domain.reconciliation.findings import Check, Verdict, added_up, skipped
from billing.domain.reconciliation.invoices import check_invoices
from billing.domain.reconciliation.journals import GatewayJournal, Lost, check_journals
from billing.domain.reconciliation.replay import Altered, Written, check_replay
from billing.domain.reconciliation.requests import Balance, check_requests, fairest
from billing.domain.reconciliation.rollups import check_rollups
from billing.postgres import reconcile_journals as stored
from billing.postgres.coarse_rollups import load_coarse_differences
from billing.postgres.journal_watermarks import load_watermarks
from billing.postgres.policies import load_policies
from billing.postgres.reconcile_invoices import load_invoiced
from billing.postgres.reconcile_records import read_judged, replay
from billing.postgres.rollups import count_groups, load_differences, load_marks
from gateway.adapters.reconciler_engines import reconcile_engines
from gateway.adapters.reconciler_journals import Ends, JournalFiles
from gateway.adapters.reconciler_ledgers import Ledger
from gateway.adapters.reconciler_live import Live, LiveStores, Look
from gateway.domain.presence import GONE_MS, Heartbeat
from gateway.serving.ports import LedgerUnavailable

REAPED_MS = 15_000
"""So long after a gateway is gone it has been reaped."""
REPLAYED_AT_ONCE = 500
DIFFERENCES_READ = 1_000
LOOKS = 4
"""A live gateway is looked at so often before it is said that its books do not balance."""
LOOKS_MAX = 12
"""And so often where only one of these looks could be compared."""
LOOK_AGAIN_S = 0.4


@dataclass(frozen=True)
class Period:
    """Requests that were admitted at or after `since` and before `until`: whole quarters of an
    hour, which roll-ups are by."""

    since: datetime
    until: datetime


@dataclass(frozen=True)
class Scope:
    """How much is looked at."""

    period: Period
    journals: Sequence[JournalFiles] = ()
    ledgers: Sequence[Ledger] = ()
    count_rows: bool = True
    """Read every usage record there is, so that none of a journal's ends can be missing."""
    replay_max: int | None = None
    """So many records of each journal are replayed, None: all."""


class Reconciler:
    """Runs the checks. `live` is None where there is no Redis to ask. A gateway that nobody has
    heard of for `gone_after_ms`, or a minute where that is less, is gone: as its reapers have
    it."""

    def __init__(
        self, engine: AsyncEngine, live: LiveStores | None, *, gone_after_ms: int = GONE_MS
    ) -> None:
        self._engine = engine
        self._live = live
        self._gone_after_ms = max(gone_after_ms, GONE_MS)

    async def run(self, scope: Scope) -> list[Verdict]:
        """Every check's verdict, in order. Raises what the driver of Postgres raises, and OSError
        where a journal cannot be read; Redis may be away."""
        ends = await self._read_ends(scope)
        return [
            await self._journals(scope, ends),
            await self._requests(),
            await self._engines(scope),
            await self._rollups(scope.period),
            await self._invoices(scope.period),
            await self._attempts(scope.period),
            await self._replay(scope, ends),
        ]

    async def _read_ends(self, scope: Scope) -> list[tuple[JournalFiles, Ends]]:
        found = []
        for journal in scope.journals:
            async with self._engine.connect() as db:
                watermarks = await load_watermarks(db, journal.gateway_id)
            shipped = {boot: each.seq for boot, each in watermarks.items()}
            ends = await asyncio.to_thread(journal.ends, shipped, at_most=scope.replay_max)
            found.append((journal, ends))
        return found

    async def _journals(self, scope: Scope, ends: Sequence[tuple[JournalFiles, Ends]]) -> Verdict:
        since, until = scope.period.since, scope.period.until
        async with self._snapshot() as db:
            journals = await stored.load_journals(db, count_rows=scope.count_rows)
            gaps = await stored.load_gaps(db, since)
            letters = await stored.load_letters(db)
            late_tokens = await stored.load_late_tokens(db, since)
            lost = {
                each.request_id: each
                for each in await stored.load_orphaned_attempts(db, since, until)
            }
            for journal, of_journal in ends:
                known = await stored.load_known(db, of_journal.shipped.keys())
                lost |= _lost(journal, of_journal, known)
        look = await self._look()
        return await asyncio.to_thread(
            check_journals,
            [self._journal(each, look, since) for each in journals],
            gaps=gaps,
            letters=letters,
            lost=[lost[request_id] for request_id in sorted(lost)],
            late_tokens=late_tokens,
        )

    async def _look(self) -> Look | None:
        if self._live is None:
            return None
        try:
            return await self._live.heartbeats()
        except LedgerUnavailable:
            return None

    async def _requests(self) -> Verdict:
        if self._live is None:
            return skipped(Check.REQUESTS, "no Redis to ask")
        try:
            balances = await self._balances(self._live)
            live = await self._live.live()
            known = await self._known(live)
        except LedgerUnavailable:
            return skipped(Check.REQUESTS, "Redis does not answer")
        return await asyncio.to_thread(
            check_requests,
            balances,
            leases=live.leases,
            open_copies=live.open_copies,
            known=known,
            uncopied=live.uncopied,
        )

    async def _balances(self, live: LiveStores) -> list[Balance]:
        """The books of each gateway. What is on its way while it is looked at differs from look to
        look; what is wrong does not."""
        looks: dict[str, list[Balance]] = defaultdict(list)
        for number in range(LOOKS_MAX):
            if number:
                await asyncio.sleep(LOOK_AGAIN_S)
            look = await live.heartbeats()
            async with self._snapshot() as db:
                journals = await stored.load_journals(db, count_rows=False)
            for journal in journals:
                looks[journal.gateway_id].append(self._balance(journal, look))
            if not any(_needs_another(of_one, number + 1) for of_one in looks.values()):
                break
        return [fairest(looks[name]) for name in sorted(looks)]

    async def _known(self, live: Live) -> frozenset[UUID]:
        ids = {lease.request_id for lease in live.leases} ^ live.open_copies.keys()
        async with self._engine.connect() as db:
            return await stored.load_known(db, ids)

    async def _engines(self, scope: Scope) -> Verdict:
        look = await self._look()
        unsettled: frozenset[UUID] | None = None
        if self._live is not None:
            with suppress(LedgerUnavailable):
                unsettled = (await self._live.live()).unsettled
        async with self._snapshot() as db:
            return await reconcile_engines(
                db,
                scope.period.since,
                scope.period.until,
                ledgers=scope.ledgers,
                look=look,
                unsettled=unsettled,
            )

    async def _rollups(self, period: Period) -> Verdict:
        async with self._snapshot() as db:
            marks = await load_marks(db, period.since, period.until)
            groups = await count_groups(db, period.since, period.until)
            whole = (period.since, period.until)
            differences = await load_differences(db, *whole, limit=DIFFERENCES_READ)
            coarse = await load_coarse_differences(db, *whole, limit=DIFFERENCES_READ)
        return await asyncio.to_thread(
            check_rollups, differences, coarse, groups=groups, dirty=marks
        )

    async def _invoices(self, period: Period) -> Verdict:
        async with self._snapshot() as db:
            invoiced = await load_invoiced(db, period.since, period.until)
        return await asyncio.to_thread(check_invoices, invoiced)

    async def _attempts(self, period: Period) -> Verdict:
        async with self._snapshot() as db:
            policies = await load_policies(db)
            verdicts = [
                await asyncio.to_thread(check_attempts, page, policies)
                async for page in read_judged(db, period.since, period.until)
            ]
        return added_up(Check.ATTEMPTS, verdicts or [check_attempts([], policies)])

    async def _replay(self, scope: Scope, ends: Sequence[tuple[JournalFiles, Ends]]) -> Verdict:
        if not scope.journals:
            return skipped(Check.REPLAY, "no journal to replay: --journal names one")
        written: list[Written | Altered] = []
        replayed = 0
        for _, of_journal in ends:
            rows = list(of_journal.shipped.values())[
                -(scope.replay_max or len(of_journal.shipped)) :
            ]
            for start in range(0, len(rows), REPLAYED_AT_ONCE):
                some = rows[start : start + REPLAYED_AT_ONCE]
                written += await replay(self._engine, some)
                replayed += len(some)
        not_shipped = sum(of_journal.not_shipped for _, of_journal in ends)
        return await asyncio.to_thread(
            check_replay, written, replayed=replayed, not_shipped=not_shipped
        )

    def _journal(
        self, known: stored.StoredJournal, look: Look | None, since: datetime
    ) -> GatewayJournal:
        boots = list(known.boots)
        standing = None if look is None else look.standings.get(known.gateway_id)
        if standing is not None and standing.journal is not None:
            told = standing.journal
            boots = [
                replace(boot, durable_seq=told.durable_seq, open_count=told.open_count)
                if boot.boot == told.boot and told.durable_seq >= boot.durable_seq
                else boot
                for boot in boots
            ]
        return GatewayJournal(
            gateway_id=known.gateway_id,
            boots=boots,
            is_gone=self._is_gone(known, look),
            told_by_others=known.told_by_others,
            without_place=known.without_place,
            of_older=known.of_older,
            is_older=known.seen_at is not None and known.seen_at < since,
        )

    def _balance(self, known: stored.StoredJournal, look: Look) -> Balance:
        """Its heartbeat counts where it tells of the very place that Postgres has."""
        standing = look.standings.get(known.gateway_id)
        told = None if standing is None else standing.journal
        return Balance(
            gateway_id=known.gateway_id,
            admitted=sum(boot.admitted for boot in known.boots),
            ended=sum(boot.ended - boot.told_twice for boot in known.boots),
            missing=sum(boot.missing for boot in known.boots),
            illegible=sum(boot.illegible for boot in known.boots),
            without_place=known.told_by_others + known.without_place,
            open_count=told.open_count if told is not None and _is_same(known, told) else None,
            is_gone=self._is_gone(known, look),
        )

    def _is_gone(self, known: stored.StoredJournal, look: Look | None) -> bool:
        """By what Postgres was told and by what Redis says now."""
        after = timedelta(milliseconds=self._gone_after_ms + REAPED_MS)
        heard_at = known.seen_at or datetime.fromtimestamp(0, UTC)
        is_old = heard_at < datetime.now(UTC) - after
        return is_old and (
            look is None or look.is_gone(known.gateway_id, after_ms=self._gone_after_ms)
        )

    def _snapshot(self) -> AsyncConnection:
        """A connection whose statements all see the same."""
        return self._engine.execution_options(isolation_level="REPEATABLE READ").connect()


def _lost(journal: JournalFiles, ends: Ends, known: frozenset[UUID]) -> dict[UUID, Lost]:
    return {
        record.request_id: Lost(
            record.request_id,
            journal.gateway_id,
            record.prompt_tokens + record.output_tokens,
            "its journal",
        )
        for record in ends.records
        if record.request_id not in known
    }


def _is_same(known: stored.StoredJournal, told: Heartbeat) -> bool:
    """Whether Postgres has that number of that boot as its last, and all before that boot."""
    shipped = {boot.boot: boot.seq for boot in known.boots}
    return shipped.get(told.boot, 0) == told.durable_seq and (
        told.durable_seq > 0 or told.is_shipped
    )


def _needs_another(looks: Sequence[Balance], taken: int) -> bool:
    """Whether a gateway has to be looked at again after so many looks at all."""
    if any(look.is_even for look in looks):
        return False
    return taken < LOOKS or sum(look.is_compared for look in looks) == 1

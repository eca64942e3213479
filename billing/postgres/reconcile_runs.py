"""What gateways have reconciled by themselves, kept with its findings."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from sqlalchemy import (
    ColumnElement,
    Interval,
    and_,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.findings import (
    Finding,
    Verdict,
    count_findings,
    verdict_view,
)
from billing.postgres.reconcile_tables import reconcile_finding, reconcile_run

FINDINGS_KEPT = 100
"""Of each check of a run; all are counted."""
CLEAN_KEPT = timedelta(days=2)
"""Runs over a quarter without findings."""
KEPT = timedelta(days=90)
"""All others."""
_TURN = 0x57454953_0012
"""Advisory lock: one gateway at a time reconciles."""
_runs, _findings = reconcile_run.c, reconcile_finding.c


class Kind(StrEnum):
    """What a run covers."""

    QUARTER = "quarter"
    DAY = "day"


class KeptRun(msgspec.Struct, frozen=True):
    """A run; `checks` as `verdict_view` shows them, with the findings that are kept."""

    id: int
    kind: str
    from_at: datetime
    to_at: datetime
    started_at: datetime
    ended_at: datetime
    findings: int
    checks: list[dict[str, object]]


async def claim(db: AsyncConnection) -> bool:
    """Whether it is the caller's turn, until its transaction ends."""
    taken = await db.scalar(text("SELECT pg_try_advisory_xact_lock(:turn)"), {"turn": _TURN})
    return bool(taken)


async def is_due(db: AsyncConnection, kind: Kind, since: datetime, *, age: timedelta) -> bool:
    """Whether the period of that kind that begins at `since` was not looked at for so long."""
    last = select(func.max(_runs.started_at)).where(_runs.kind == kind, _runs.from_at == since)
    recent = func.now() - literal(age, Interval)
    return not await db.scalar(select(func.coalesce(last.scalar_subquery() > recent, False)))


async def keep_run(
    db: AsyncConnection,
    kind: Kind,
    since: datetime,
    until: datetime,
    *,
    started_at: datetime,
    verdicts: Sequence[Verdict],
) -> int:
    """Keep a run, within the caller's transaction, in the place of earlier ones over the same
    period, and forget old ones; returns its number. Where it found nothing, the last that did
    stays."""
    shown = [{**verdict_view(verdict), "findings": []} for verdict in verdicts]
    found = count_findings(verdicts)
    run_id: int = (
        await db.execute(
            insert(reconcile_run)
            .values(
                kind=kind,
                from_at=since,
                to_at=until,
                started_at=started_at,
                ended_at=func.clock_timestamp(),
                findings=found,
                verdicts=msgspec.to_builtins(shown),
            )
            .returning(_runs.id)
        )
    ).scalar_one()
    kept = [each for verdict in verdicts for each in verdict.findings[:FINDINGS_KEPT]]
    if kept:
        rows = [_row(run_id, number, each) for number, each in enumerate(kept, 1)]
        await db.execute(insert(reconcile_finding), rows)
    same_period = and_(_runs.kind == kind, _runs.from_at == since, _runs.to_at == until)
    replaced = and_(same_period, _runs.id != run_id, or_(_runs.findings == 0, literal(bool(found))))
    clean = and_(_runs.kind == Kind.QUARTER, _runs.findings == 0, _is_older(CLEAN_KEPT))
    await db.execute(delete(reconcile_run).where(or_(replaced, clean, _is_older(KEPT))))
    return run_id


def _is_older(age: timedelta) -> ColumnElement[bool]:
    return _runs.started_at < func.now() - literal(age, Interval)


async def latest_findings(db: AsyncConnection) -> dict[str, int]:
    """How many findings each check has, in the latest run of either kind whichever has more; empty
    where nothing was ever reconciled."""
    found: dict[str, int] = {}
    for kind in Kind:
        newest = (
            select(_runs.id, _runs.verdicts)
            .where(_runs.kind == kind)
            .order_by(_runs.id.desc())
            .limit(1)
        )
        for _, verdicts in await db.execute(newest):
            for each in verdicts:
                name, count = each["check"], each["findings_count"]
                found[name] = max(found.get(name, 0), count)
    return found


async def list_runs(
    db: AsyncConnection,
    *,
    limit: int,
    before_id: int | None = None,
    only_with_findings: bool = False,
) -> list[KeptRun]:
    """The latest first, those before `before_id`, each with its findings."""
    chosen = select(reconcile_run).order_by(_runs.id.desc()).limit(limit)
    if only_with_findings:
        chosen = chosen.where(_runs.findings > 0)
    if before_id is not None:
        chosen = chosen.where(_runs.id < before_id)
    rows = (await db.execute(chosen)).all()
    found: dict[tuple[int, str], list[dict[str, object]]] = defaultdict(list)
    of_these = select(reconcile_finding).where(_findings.run_id.in_([row.id for row in rows]))
    for row in await db.execute(of_these.order_by(_findings.run_id, _findings.number)):
        found[row.run_id, row.check_id].append(
            {name: getattr(row, name) for name in ("subject", "request_id", "size", "unit", "what")}
        )
    return [
        KeptRun(
            row.id, row.kind, row.from_at, row.to_at, row.started_at, row.ended_at, row.findings,
            [{**each, "findings": found[row.id, each["check"]]} for each in row.verdicts],
        )
        for row in rows
    ]  # fmt: skip


def _row(run_id: int, number: int, finding: Finding) -> dict[str, object]:
    return {
        "run_id": run_id,
        "number": number,
        "check_id": finding.check,
        "subject": finding.subject,
        "request_id": finding.request_id,
        "size": finding.size,
        "unit": finding.unit,
        "what": finding.what,
    }

"""Alerts about budgets in Postgres: each kept once, listed, and handed out until they are sent."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Row, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.budget_alert import BudgetAlert, Crossed
from billing.domain.invoicing.periods import Month
from billing.postgres.budget_tables import budget_alert

_TURN = 0x57454952_0015
"""Advisory lock: one gateway at a time judges budgets."""
SENT_FOR = timedelta(hours=72)
"""An alert that nobody took for so long is not sent again."""
_LONGEST_WAIT = timedelta(hours=1)
_COLUMNS = [budget_alert.c[name] for name in BudgetAlert.__struct_fields__]
_SENDABLE = (
    budget_alert.c.delivered_at.is_(None),
    budget_alert.c.noticed_at > func.now() - SENT_FOR,
)


async def take_turn(db: AsyncConnection) -> bool:
    """Whether this transaction may judge budgets; else somebody does it now."""
    taken: bool = (
        await db.execute(text("SELECT pg_try_advisory_xact_lock(:turn)"), {"turn": _TURN})
    ).scalar_one()
    return taken


async def keep_alerts(
    db: AsyncConnection, crossings: Sequence[Crossed], month: Month, currency: str
) -> list[BudgetAlert]:
    """Those that nobody had kept yet, in order; of each threshold of each limit the first."""
    kept: list[BudgetAlert] = []
    for each in crossings:
        made = await db.execute(
            insert(budget_alert)
            .values(
                tenant_id=each.budget.tenant_id,
                api_key_id=each.budget.api_key_id,
                model=each.budget.model,
                month=month.name,
                period_start=month.start,
                period_end=month.end,
                currency=currency,
                threshold_percent=each.threshold_percent,
                limit_pico=each.budget.limit_pico,
                spent_pico=each.spent_pico,
                unpriced_requests=each.unpriced_requests,
            )
            .on_conflict_do_nothing()
            .returning(*_COLUMNS)
        )
        kept += [_alert(row) for row in made]
    return kept


async def list_alerts(
    db: AsyncConnection, *, tenant_id: str | None = None, limit: int, before_id: int | None = None
) -> list[BudgetAlert]:
    """The latest first."""
    query = select(*_COLUMNS).order_by(budget_alert.c.id.desc()).limit(limit)
    if tenant_id is not None:
        query = query.where(budget_alert.c.tenant_id == tenant_id)
    if before_id is not None:
        query = query.where(budget_alert.c.id < before_id)
    return [_alert(row) for row in await db.execute(query)]


async def take_unsent(db: AsyncConnection, *, lease: timedelta) -> BudgetAlert | None:
    """One whose time has come, the longest due first, for whoever asks alone and so long: then, if
    nobody has said what became of it, it comes again. So whoever dies with it leaves it to the
    next."""
    due = (
        select(budget_alert.c.id)
        .where(*_SENDABLE, budget_alert.c.next_attempt_at <= func.now())
        .order_by(budget_alert.c.next_attempt_at, budget_alert.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    taken = await db.execute(
        update(budget_alert)
        .where(budget_alert.c.id.in_(select(due.c.id)))
        .values(attempts=budget_alert.c.attempts + 1, next_attempt_at=func.now() + lease)
        .returning(*_COLUMNS)
    )
    row = taken.one_or_none()
    return None if row is None else _alert(row)


async def note_refused(db: AsyncConnection, alert_id: int, *, first_wait: timedelta) -> None:
    """The webhook did not take it: it comes again, after twice as long each time, an hour at
    most."""
    wait = func.least(
        first_wait * func.power(2, func.least(budget_alert.c.attempts - 1, 20)), _LONGEST_WAIT
    )
    await db.execute(
        update(budget_alert)
        .where(budget_alert.c.id == alert_id, budget_alert.c.delivered_at.is_(None))
        .values(next_attempt_at=func.now() + wait)
    )


async def note_sent(db: AsyncConnection, alert_id: int) -> None:
    """The webhook took it."""
    await db.execute(
        update(budget_alert)
        .where(budget_alert.c.id == alert_id, budget_alert.c.delivered_at.is_(None))
        .values(delivered_at=func.now())
    )


def _alert(row: Row[tuple[object, ...]]) -> BudgetAlert:
    fields = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name
    for name in ("limit_pico", "spent_pico"):
        fields[name] = int(fields[name])
    return BudgetAlert(**fields)

"""`/billing/v1/reconciliation`: what gateways have reconciled, and what they found."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec
from asyncpg import PostgresError
from litestar import get
from litestar.params import FromQuery
from litestar.types import ControllerRouterHandler
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.reconcile_runs import KeptRun, list_runs
from gateway.administration.pages import check_page_limit, cursor_after, entry_id
from gateway.administration.views import View
from gateway.domain.instants import ms_of, shown
from gateway.domain.permissions import Permission
from gateway.errors import StoreUnavailable
from gateway.http.access import needs
from gateway.http.openapi_answers import Instant, Page
from gateway.http.openapi_operations import described


class FindingAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One thing that is wrong: where, of which request where that is known, and how much."""

    subject: str
    request_id: UUID | None
    size: int
    unit: str
    what: str


class CheckAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What one check said. `terms` are the differences that are accounted for; of `findings` the
    first hundred are kept, `findings_count` counts all."""

    check: str
    title: str
    ok: bool
    not_applicable: str | None
    terms: Mapping[str, int]
    findings_count: int
    findings: list[FindingAnswer]


class ReconciliationAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A run over the requests admitted in a quarter of an hour, or in a day of UTC."""

    id: int
    kind: str
    from_: Instant = msgspec.field(name="from")
    to: Instant
    started_at: Instant
    ended_at: Instant
    findings: int
    checks: list[CheckAnswer]


def reconciliation_handler(engine: AsyncEngine) -> ControllerRouterHandler:
    """The handler; mounted under `/billing/v1`, whose guard it gets."""

    @get(
        "/reconciliation", opt=described(Page[ReconciliationAnswer]) | needs(Permission.MONEY_READ)
    )
    async def list_reconciliations(
        *, limit: FromQuery[int] = 100, cursor: FromQuery[str | None] = None
    ) -> View:
        """Runs of reconciliation, the latest first: each minute over the last quarter of an hour,
        each night over the day."""
        return await read_runs(engine, limit, cursor)

    return list_reconciliations


async def read_runs(
    engine: AsyncEngine, limit: int, cursor: str | None, *, only_with_findings: bool = False
) -> View:
    """A page of what gateways have reconciled by themselves, as the API and the console show it.
    Raises Unprocessable, StoreUnavailable."""
    page = check_page_limit(limit)
    before_id = None if cursor is None else entry_id(cursor)
    try:
        async with engine.connect() as db:
            runs = await list_runs(
                db, limit=page + 1, before_id=before_id, only_with_findings=only_with_findings
            )
    except (PostgresError, SQLAlchemyError, OSError) as error:
        raise StoreUnavailable("Postgres cannot be reached") from error
    more = len(runs) > page
    return {
        "items": [_view(run) for run in runs[:page]],
        "next_cursor": cursor_after(str(runs[page - 1].id)) if more else None,
    }


def _view(run: KeptRun) -> View:
    return {
        "id": run.id,
        "kind": run.kind,
        "from": _shown(run.from_at),
        "to": _shown(run.to_at),
        "started_at": _shown(run.started_at),
        "ended_at": _shown(run.ended_at),
        "findings": run.findings,
        "checks": run.checks,
    }


def _shown(at: datetime) -> str | None:
    return shown(ms_of(at))

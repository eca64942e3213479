"""`/billing/v1/budget-alerts`: budgets that are four fifths spent, or whole."""

import msgspec
from asyncpg import PostgresError
from litestar import get
from litestar.params import FromQuery
from litestar.types import ControllerRouterHandler
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration.budget_alerts import read_alerts
from gateway.administration.checks import check_tenant_id
from gateway.administration.views import View
from gateway.domain.permissions import Permission
from gateway.errors import StoreUnavailable
from gateway.http.access import needs
from gateway.http.openapi_answers import Instant, Page
from gateway.http.openapi_operations import described


class BudgetAlertAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A threshold of a budget that was reached in a month of its tenant's time zone: of a key where
    `api_key_id` is one, of one model where `model` is. `limit` and `spent` are as they were then;
    `unpriced_requests` are in neither. `delivered_at` is when the webhook took it."""

    id: int
    tenant_id: str
    api_key_id: str | None
    model: str | None
    month: str
    period_start: Instant
    period_end: Instant
    threshold_percent: int
    limit: str
    spent: str
    currency: str
    unpriced_requests: int
    noticed_at: Instant
    delivered_at: Instant | None


def budget_alerts_handler(engine: AsyncEngine) -> ControllerRouterHandler:
    """The handler; mounted under `/billing/v1`, whose guard it gets."""

    @get("/budget-alerts", opt=described(Page[BudgetAlertAnswer]) | needs(Permission.MONEY_READ))
    async def list_budget_alerts(
        *,
        tenant_id: FromQuery[str | None] = None,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Alerts about monthly budgets at 80 and 100 percent, of all tenants or one, the latest
        first."""
        return await alerts_page(engine, limit, cursor, tenant_id=tenant_id)

    return list_budget_alerts


async def alerts_page(
    engine: AsyncEngine, limit: int, cursor: str | None, *, tenant_id: str | None
) -> View:
    """A page of alerts, as the API and the console show it. Raises Unprocessable,
    StoreUnavailable."""
    if tenant_id is not None:
        check_tenant_id(tenant_id, field="tenant_id")
    try:
        async with engine.connect() as db:
            return await read_alerts(db, tenant_id=tenant_id, limit=limit, cursor=cursor)
    except (PostgresError, SQLAlchemyError, OSError) as error:
        raise StoreUnavailable("Postgres cannot be reached") from error

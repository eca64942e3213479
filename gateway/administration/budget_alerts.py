"""Alerts about budgets, a page at a time."""

from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.budget_alerts import list_alerts
from gateway.administration.pages import LIMIT_DEFAULT, check_page_limit, cursor_after, entry_id
from gateway.administration.views import View
from gateway.domain.budgets import alert_view


async def read_alerts(
    db: AsyncConnection,
    *,
    tenant_id: str | None = None,
    limit: int = LIMIT_DEFAULT,
    cursor: str | None = None,
) -> View:
    """The latest first, of all tenants or one. Raises Unprocessable."""
    check_page_limit(limit)
    before_id = None if cursor is None else entry_id(cursor)
    found = await list_alerts(db, tenant_id=tenant_id, limit=limit + 1, before_id=before_id)
    more = len(found) > limit
    return {
        "items": [alert_view(alert) for alert in found[:limit]],
        "next_cursor": cursor_after(str(found[limit - 1].id)) if more else None,
    }

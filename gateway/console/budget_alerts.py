"""Budgets that are four fifths spent, or whole."""

from typing import Any

from litestar import get

from gateway.console.access import page
from gateway.console.lists import ROWS, given, paging
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable
from gateway.http.budget_alerts import alerts_page

_PATH = "/console/money/budget-alerts"


@get("/money/budget-alerts", opt=page(Permission.MONEY_READ))
async def list_budget_alerts(visit: Here) -> Answer:
    """Of all tenants or one, the latest first."""
    query = visit.query()
    filters = given(query, ("tenant_id",))
    found: dict[str, Any] = {"items": [], "next_cursor": None}
    status = 200
    try:
        found = await alerts_page(
            visit.parts.finance_postgres,
            ROWS,
            query.optional("cursor"),
            tenant_id=filters.get("tenant_id"),
        )
    except Unprocessable as error:
        query.refused(error)
        status = error.status
    return visit.show(
        "invoices/alerts.html",
        status=status,
        form=query,
        filtered=bool(filters),
        rows=found["items"],
        **paging(_PATH, query, found["next_cursor"], filters),
    )


PAGES = (list_budget_alerts,)

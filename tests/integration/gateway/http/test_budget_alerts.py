"""`/billing/v1/budget-alerts` and `weir budget-alert list`: the same, a page at a time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.budget_alert import Budget, Crossed
from billing.domain.invoicing.periods import month_of_instant
from billing.postgres.budget_alerts import keep_alerts
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.http.billing import billing_router
from gateway.http.budget_alerts import BudgetAlertAnswer, budget_alerts_handler
from gateway.http.openapi_answers import Page
from gateway.http.problems import PROBLEM_HANDLERS

NOVEMBER = month_of_instant(datetime(2026, 11, 15, tzinfo=UTC), "Europe/Berlin")


@pytest.fixture
async def api(engine: AsyncEngine) -> AsyncIterator[AdminApi]:
    """The finance API, with three alerts of `acme` and one of `globex`."""
    async with engine.begin() as db:
        for tenant, key, model, percent in (
            ("acme", None, None, 80),
            ("globex", None, None, 80),
            ("acme", None, None, 100),
            ("acme", "key_1", "m", 100),
        ):
            budget = Budget(tenant, key, model, 10 * 10**12)
            made = Crossed(budget, percent, 12_345_678_900_001, 3)
            assert len(await keep_alerts(db, [made, made], NOVEMBER, "USD")) == 1
    administration = Administration(engine)
    app = Litestar(
        [billing_router(administration, more=[budget_alerts_handler(engine)])],
        exception_handlers=PROBLEM_HANDLERS,
    )
    async with client_of(app) as client:
        yield AdminApi(client, administration, {})


async def test_alerts_are_listed_with_the_latest_first(api: AdminApi) -> None:
    """With whose they are, the exact amounts, and the month's ends in the tenant's zone."""
    answer = await api.call("GET", "/budget-alerts", role=Role.FINANCE, below="/billing/v1")
    items = msgspec.json.decode(answer.content, type=Page[BudgetAlertAnswer]).items
    assert [(each.tenant_id, each.api_key_id, each.threshold_percent) for each in items] == [
        ("acme", "key_1", 100), ("acme", None, 100), ("globex", None, 80), ("acme", None, 80),
    ]  # fmt: skip
    first = answer.json()["items"][0]
    assert (first["limit"], first["spent"], first["currency"]) == (
        "10.00", "12.345678900001", "USD",
    )  # fmt: skip
    assert (first["month"], first["model"], first["unpriced_requests"]) == ("2026-11", "m", 3)
    assert first["period_start"] == "2026-10-31T23:00:00.000Z"
    assert first["delivered_at"] is None


async def test_pages_and_tenants(api: AdminApi) -> None:
    """Every alert of a tenant once; what is wrong is named; who has no business with it is told."""
    found, cursor = [], ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        answer = await api.call(
            "GET", f"/budget-alerts?tenant_id=acme&limit=2{more}", below="/billing/v1"
        )
        page = answer.json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert (len(found), found) == (3, sorted(found, reverse=True))
    for query, param in (
        ("limit=0", "limit"),
        ("cursor=?", "cursor"),
        ("tenant_id=A%20b", "tenant_id"),
    ):
        answer = await api.call("GET", f"/budget-alerts?{query}", below="/billing/v1")
        assert (answer.status_code, answer.json()["param"]) == (422, param)
    for role in (Role.VIEWER, Role.OPERATOR):
        refused = await api.call("GET", "/budget-alerts", role=role, below="/billing/v1")
        assert refused.status_code == 403

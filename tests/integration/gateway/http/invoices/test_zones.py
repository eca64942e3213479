"""A tenant's time zone that is changed between a draft and its issuing."""

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import pytest
from finance_api import FinanceApi

from billing.domain.invoicing.issuing import Blocker, Obstacle
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.domain.tenant import Tenant
from gateway.errors import Conflict, IssueBlocked

OPEN_AT = datetime(2026, 2, 1, 5, tzinfo=UTC)
LOS_ANGELES = {"time_zone": "America/Los_Angeles"}


async def runs(_tenant: Tenant, end: datetime) -> Iterable[Blocker]:
    """A request of the first night of February in UTC, the last of January in Los Angeles."""
    if end <= OPEN_AT:
        return []
    return [Blocker(obstacle=Obstacle.STILL_OPEN, subject="requests", what="one runs")]


async def test_what_may_still_come_is_asked_for_the_end_that_is_billed(
    finance: FinanceApi,
) -> None:
    """And not for the one that the draft was made with."""
    desk = InvoiceDesk(finance.world.engine, runs)
    drafted = await desk.draft("fin", "acme", "2026-01")
    await finance.admin.json("PATCH", "/tenants/acme", LOS_ANGELES)
    with pytest.raises(IssueBlocked) as refused:
        await desk.issue("fin", UUID(str(drafted["id"])))
    assert [each["obstacle"] for each in refused.value.blockers] == ["still_open"]


async def test_a_zone_that_is_changed_while_stores_are_asked(finance: FinanceApi) -> None:
    """Is a conflict where the month ends later by it; told again, it is asked for anew."""

    async def changes_it(tenant: Tenant, end: datetime) -> Iterable[Blocker]:
        await finance.admin.json("PATCH", "/tenants/acme", LOS_ANGELES)
        return await runs(tenant, end)

    desk = InvoiceDesk(finance.world.engine, changes_it)
    drafted = await desk.draft("fin", "acme", "2026-01")
    with pytest.raises(Conflict, match="time zone"):
        await desk.issue("fin", UUID(str(drafted["id"])))
    with pytest.raises(IssueBlocked):
        await desk.issue("fin", UUID(str(drafted["id"])))

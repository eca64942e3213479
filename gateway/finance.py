"""What finance asks of a gateway: the routes below `/billing/v1`, and what stands behind them."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from litestar import Router

from billing.domain.invoicing.issuing import Blocker
from gateway.adapters.asked_reconciliations import AskedReconciliations
from gateway.adapters.invoice_readiness import find_expected
from gateway.adapters.reconciler import Reconciler
from gateway.adapters.reconciler_live import LiveStores
from gateway.adapters.request_story import RequestStories
from gateway.adapters.unit_costs import UnitCosts
from gateway.adapters.usage_reports import UsageReports
from gateway.administration import Administration
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.domain.tenant import Tenant, waiting_of
from gateway.http.billing import billing_router
from gateway.http.budget_alerts import budget_alerts_handler
from gateway.http.invoices import invoice_router
from gateway.http.reconciliation import reconciliation_handler
from gateway.http.unit_cost import unit_cost_handlers
from gateway.http.usage import usage_handler

if TYPE_CHECKING:
    from gateway.app import Gateway

USAGE_POOL_SIZE = UsageReports.POOL_SIZE + UnitCosts.POOL_SIZE + RequestStories.POOL_SIZE
"""Connections for whoever asks what was used and what it cost."""


@dataclass(frozen=True)
class FinanceParts:
    """What the finance API and the console's pages on money both ask."""

    usage: UsageReports
    unit_costs: UnitCosts
    invoice_desk: InvoiceDesk
    reconciliations: AskedReconciliations


def finance_parts(gateway: "Gateway", usage: UsageReports) -> FinanceParts:
    """Of one gateway, to be made once: each part bounds the connections that it takes."""
    unit_costs = UnitCosts(gateway.usage_postgres, gateway.completeness)
    return FinanceParts(usage, unit_costs, _invoice_desk(gateway), _reconciliations(gateway))


def finance_router(
    gateway: "Gateway", administration: Administration, parts: FinanceParts
) -> Router:
    """`/billing/v1`, whole."""
    return billing_router(
        administration,
        more=[
            usage_handler(parts.usage),
            *unit_cost_handlers(parts.unit_costs),
            reconciliation_handler(gateway.reconciling_postgres),
            budget_alerts_handler(gateway.reconciling_postgres),
            invoice_router(parts.invoice_desk),
        ],
    )


def _reconciliations(gateway: "Gateway") -> AskedReconciliations:
    engine = gateway.reconciling_postgres
    live = LiveStores(gateway.redis, gateway.births)
    return AskedReconciliations(
        Reconciler(engine, live, gone_after_ms=gateway.settings.gateway_gone_ms)
    )


def _invoice_desk(gateway: "Gateway") -> InvoiceDesk:
    live = LiveStores(gateway.redis, gateway.births)
    batch_wait_ms = gateway.settings.queue_batch_wait_ms

    async def expected(tenant: Tenant, end: datetime) -> list[Blocker]:
        wait_ms = max(waiting_of(tenant.limits).max_wait_ms, batch_wait_ms)
        return await find_expected(
            gateway.invoicing_postgres, live, tenant.id, end, longest_wait_ms=wait_ms
        )

    return InvoiceDesk(gateway.invoicing_postgres, expected)

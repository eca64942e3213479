"""What the pages of the console are given by the composition root."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.asked_reconciliations import AskedReconciliations
from gateway.adapters.presence import Gateways
from gateway.adapters.request_story import RequestStories
from gateway.adapters.unit_costs import UnitCosts
from gateway.adapters.usage_reports import UsageReports
from gateway.administration import Administration
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.serving.live_view import LiveView
from gateway.serving.ports import Clock, Directory, Fleet, MonthRebuild


@dataclass(frozen=True, kw_only=True)
class ConsoleParts:
    """Verbs and readings, each the one that the APIs answer from: a page shows the same figures."""

    administration: Administration
    directory: Directory
    """What this gateway knows of tenants, keys, models and workers, without asking Postgres."""
    fleet: Fleet
    gateways: Gateways
    """The list of gateways. Raises LedgerUnavailable."""
    live: LiveView
    """`await live.look()` is as `GET /admin/v1/live` answers. Raises StoreUnavailable."""
    months: MonthRebuild
    """What brings a month's spend back where Redis does not know it."""
    stories: RequestStories
    """What is known of single requests."""
    usage: UsageReports
    unit_costs: UnitCosts
    invoice_desk: InvoiceDesk
    reconciliations: AskedReconciliations
    """The checks of the reconciliation over a period that somebody asks for."""
    finance_postgres: AsyncEngine
    """For reading findings of the reconciliation and budget alerts, as `/billing/v1` does."""
    clock: Clock
    version: str
    """Weir's own, for the footer."""

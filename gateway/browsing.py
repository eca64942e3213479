"""The console of a gateway: its pages on the parts that the APIs answer from."""

from importlib import metadata
from typing import TYPE_CHECKING

from gateway.adapters.request_story import RequestStories
from gateway.administration import Administration
from gateway.console.parts import ConsoleParts
from gateway.console.router import Console
from gateway.finance import FinanceParts
from gateway.serving.live_view import LiveView

if TYPE_CHECKING:
    from gateway.app import Gateway


def console_of(
    gateway: "Gateway",
    administration: Administration,
    finance: FinanceParts,
    *,
    live: LiveView,
    stories: RequestStories,
) -> Console:
    """`/console`, whole. It makes nothing of its own that asks a store."""
    return Console(
        ConsoleParts(
            administration=administration,
            directory=gateway.directory,
            fleet=gateway.fleet,
            gateways=gateway.gateways,
            live=live,
            months=gateway.months,
            stories=stories,
            usage=finance.usage,
            unit_costs=finance.unit_costs,
            invoice_desk=finance.invoice_desk,
            reconciliations=finance.reconciliations,
            finance_postgres=gateway.reconciling_postgres,
            clock=gateway.clock,
            version=metadata.version("weir"),
        )
    )

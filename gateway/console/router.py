"""The console as one router, to be mounted by the application."""

from collections.abc import Sequence
from typing import Any

from litestar import Request, Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler

from gateway.console import (
    account,
    audit,
    home,
    invoices,
    keys,
    limits,
    live,
    login,
    own,
    own_invoices,
    own_keys,
    own_usage,
    prices,
    reconciliation,
    requests,
    tenants,
    unit_cost,
    usage,
    users,
    workers,
)
from gateway.console.access import page_access
from gateway.console.assets import asset_handler, load_assets
from gateway.console.errors import ErrorHandler, answer_errors
from gateway.console.guard import console_guard
from gateway.console.parts import ConsoleParts
from gateway.console.rendering import Renderer
from gateway.console.visit import Visit

FORM_BYTES_MAX = 1024 * 1024
"""Of what who is logged in sends, where a page names no other."""

PAGES: Sequence[HTTPRouteHandler] = (
    *home.PAGES,
    *login.PAGES,
    *live.PAGES,
    *tenants.PAGES,
    *keys.PAGES,
    *limits.PAGES,
    *usage.PAGES,
    *requests.PAGES,
    *workers.PAGES,
    *prices.PAGES,
    *invoices.PAGES,
    *unit_cost.PAGES,
    *reconciliation.PAGES,
    *audit.PAGES,
    *users.PAGES,
    *account.PAGES,
    *own.PAGES,
    *own_keys.PAGES,
    *own_usage.PAGES,
    *own_invoices.PAGES,
)
"""Every page and whatever forms are sent to; each module adds its own."""


class Console:
    """The console on its parts."""

    def __init__(self, parts: ConsoleParts) -> None:
        self._parts = parts
        self._assets = load_assets()
        renderer = Renderer(self._assets, version=parts.version)

        # A function, not a method: a router is copied with all that it holds.
        def visit_of(request: Request[Any, Any, Any]) -> Visit:
            return Visit(request, parts, renderer, request.scope.get("auth"))

        self._visit_of = visit_of

    def router(self) -> Router:
        """`/console`. Raises LookupError where a page does not say who may see it."""
        handlers = [asset_handler(self._assets), *PAGES]
        for handler in handlers:
            page_access(handler.opt, str(handler))
        return Router(
            "/console",
            route_handlers=handlers,
            dependencies={"visit": Provide(self._visit_of, sync_to_thread=False)},
            guards=[console_guard(self._parts.administration)],
            request_max_body_size=FORM_BYTES_MAX,
            include_in_schema=False,
        )

    def error_handler(self, otherwise: ErrorHandler) -> ErrorHandler:
        """For the application: pages for errors below `/console`, `otherwise` for all others."""
        return answer_errors(self._visit_of, otherwise)

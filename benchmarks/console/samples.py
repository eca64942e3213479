"""Which pages are asked for: every route of the application that is a page, or an API that gives
what pages show, with ids of what is there."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from litestar.routes import HTTPRoute

from gateway.app import Gateway, create_app
from gateway.settings import Settings

NO_PAGE = frozenset(
    {
        "/console/static/{version}/{name}",
        "/console/{rest}",
        "/console/login",
    }
)
"""Files, whatever is not found, and what leads on whoever is logged in."""
NO_ANSWER_AT_ONCE = frozenset(
    {"/admin/v1/audit.csv", "/admin/v1/audit.jsonl", "/admin/v1/audit/verify"}
)
"""Everything there is: that takes as long as it is."""
QUERIES: Mapping[str, tuple[str, ...]] = {
    "/billing/v1/unit-cost": ("?since={day}&until={today}&price_per_gpu_hour=2.35&gpus=4",),
    "/console/audit": ("", "?tenant_id={tenant_id}", "?action=key.*", "?since={today_minutes}"),
    "/console/audit/chain": ("", "?check=1"),
    "/console/live": ("", "?search=number"),
    "/console/money/invoices": ("", "?tenant_id={tenant_id}", "?period={month}"),
    "/console/requests": ("", "?tenant_id={tenant_id}"),
    "/console/tenants": ("", "?search=99"),
    "/console/usage": (
        "",
        "?by=key",
        "?by=model&period=7d",
        "?period=today",
        "?tenant_id={tenant_id}&by=key",
    ),
}
"""How a route is asked otherwise than plainly."""


class Sample(NamedTuple):
    """One question."""

    path: str
    own: bool
    """Whether a tenant's admin asks it, and not the admin."""

    @property
    def is_page(self) -> bool:
        """Whether somebody waits to see it: no API by itself, and no file."""
        path = self.path.partition("?")[0]
        return path.startswith("/console") and not path.endswith(".csv")


class NoSample(Exception):
    """A page that nobody told this benchmark an id for; the message names it."""


async def routes_of(database_url: str, redis_url: str, folder: Path) -> list[str]:
    """The paths of every GET route of the application."""
    gateway = Gateway(
        Settings(database_url=database_url, redis_url=redis_url, journal_dir=folder / "routes")
    )
    await gateway.open()
    try:
        routes = create_app(gateway).routes
    finally:
        await gateway.close()
    http = [route for route in routes if isinstance(route, HTTPRoute)]
    return sorted({route.path_format for route in http if "GET" in route.methods})


def samples_of(routes: list[str], ids: Mapping[str, str]) -> list[Sample]:
    """Each page and API once for each way that it is asked. Raises NoSample where a path has a name
    that is not in `ids`."""
    asked = []
    for route in routes:
        is_page = route.startswith("/console")
        is_api = route.startswith(("/admin/v1", "/billing/v1"))
        if not (is_page or is_api) or route in NO_PAGE or route in NO_ANSWER_AT_ONCE:
            continue
        own = route.startswith("/console/own")
        queries = QUERIES.get(route, ("",))
        asked += [Sample(_filled(route + query, ids), own) for query in queries]
    return asked


def _filled(path: str, ids: Mapping[str, str]) -> str:
    kind = path.split("/")[3] if path.count("/") > 2 else ""
    for name in re.findall(r"{(\w+)}", path):
        found = ids.get(f"{kind}.{name}", ids.get(name))
        if found is None:
            raise NoSample(f"no sample of {{{name}}} for {path}")
        path = path.replace(f"{{{name}}}", found)
    return path

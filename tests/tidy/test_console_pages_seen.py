"""Every page of the console is one that axe looks at (`tests/console/console_pages.py`)."""

import re
from urllib.parse import urlsplit

import pytest
from console.console_pages import NO_PAGES, PAGES

from gateway.console.router import PAGES as HANDLERS

ROUTES = sorted({path for each in HANDLERS if "GET" in each.http_methods for path in each.paths})
_SEGMENTS = {"str": "[^/]+", "path": ".+"}


def route_of(path: str) -> str | None:
    """The route that answers a path: where several could, the one with more of it written out."""
    asked = urlsplit(path.removeprefix("/console")).path
    fitting = [route for route in ROUTES if _pattern(route).fullmatch(asked)]
    return max(fitting, key=_written_out, default=None)


@pytest.mark.parametrize("route", ROUTES)
def test_a_page_is_looked_at(route: str) -> None:
    """By somebody; or it is told why it is not."""
    looked_at = route in {route_of(seen.path) for seen in PAGES}
    assert looked_at != (route in NO_PAGES), route


def test_what_is_told_is_there() -> None:
    """No row is of a route that is gone, and none is there twice."""
    assert set(NO_PAGES) <= set(ROUTES)
    assert len({(seen.role, seen.path) for seen in PAGES}) == len(PAGES)
    assert route_of("/console/workers/new") == "/workers/new"
    assert route_of("/console/own/invoices/{invoice}") == "/own/invoices/{invoice_id:str}"
    assert route_of("/console/no-such-page") == "/{rest:path}"


def _pattern(route: str) -> re.Pattern[str]:
    # What is put between braces in a row is one segment, as is an id.
    return re.compile(re.sub(r"\{\w+:(\w+)\}", lambda found: _SEGMENTS[found[1]], route))


def _written_out(route: str) -> list[bool]:
    return [not segment.startswith("{") for segment in route.split("/")]

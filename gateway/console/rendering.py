"""Templates and what every answer of the console says to the browser that gets it."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.datastructures import Cookie

from gateway.console.assets import Assets
from gateway.console.figures import FILTERS, meter_permille
from gateway.console.troubles import stores_text

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""Nothing inline, nothing of others, and no other page around this one."""

PAGE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
    "vary": "cookie",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Renderer:
    """Draws templates. A name that a template does not know is an error, never an empty text."""

    def __init__(self, assets: Assets, *, version: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("gateway.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals.update(
            static=assets.url,
            version=version,
            meter_permille=meter_permille,
            stores_text=stores_text,
        )

    def draw(self, template: str, context: dict[str, Any]) -> str:
        """The HTML of a template."""
        return self._environment.get_template(template).render(context)


def html_response(
    html: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    cookies: list[Cookie] | None = None,
) -> Response[str]:
    """A page, or a part of one."""
    return Response(
        html,
        status_code=status,
        media_type="text/html",
        headers={**PAGE_HEADERS, **(headers or {})},
        cookies=cookies or [],
    )


def redirect_response(
    to: str, *, cookies: list[Cookie] | None = None, status: int = 303
) -> Response[str]:
    """Elsewhere, by GET."""
    return html_response("", status=status, headers={"location": to}, cookies=cookies)

"""One request to the console: who asks, what they may, and every way to answer them."""

from collections.abc import Awaitable
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from litestar import Request, Response
from litestar.datastructures import Cookie
from litestar.di import NamedDependency

from gateway.administration.credentials import csrf_of
from gateway.console.cookies import Flash, flash_cookie, flash_of, no_flash_cookie, theme_of
from gateway.console.forms import TEXT_CHARACTERS_MAX, Form
from gateway.console.navigation import Place, current_place, places_of
from gateway.console.parts import ConsoleParts
from gateway.console.rendering import Renderer, html_response, redirect_response
from gateway.domain.account import TENANT_ROLES, User
from gateway.domain.permissions import Caller, Permission
from gateway.errors import NotFound, StoreUnavailable, Unprocessable
from gateway.http.form_fields import form_fields
from gateway.http.session_cookie import SESSION_COOKIE, keeps_to_https

Answer = Response[str]
T = TypeVar("T")


class Visit:
    """What a page is given. `caller` is None on pages for whoever asks, before they log in."""

    def __init__(
        self,
        request: Request[Any, Any, Any],
        parts: ConsoleParts,
        renderer: Renderer,
        caller: Caller | None,
    ) -> None:
        self.request = request
        self.parts = parts
        self.caller = caller
        self._renderer = renderer

    @property
    def user(self) -> User:
        """Who is logged in; only where the page asked for somebody who is."""
        assert self.caller is not None  # noqa: S101 - the guard let nobody else in
        return self.caller.user

    @property
    def actor(self) -> str:
        """How the audit log names who asks."""
        return f"user:{self.user.email}"

    @property
    def tenant_id(self) -> str:
        """Whose page a tenant's role sees. Raises NotFound for everyone else."""
        if self.user.role not in TENANT_ROLES or self.user.tenant_id is None:
            raise NotFound("there is no such page")
        return self.user.tenant_id

    @property
    def held_to(self) -> str | None:
        """The only tenant that who asks may see anything of; None for those who see all."""
        return self.tenant_id if self.is_tenants else None

    def may(self, permission: Permission | str) -> bool:
        """Whether who asks has a permission, which templates name as text: `users.write`."""
        return self.caller is not None and Permission(permission) in self.caller.permissions

    @property
    def is_tenants(self) -> bool:
        """Whether who asks holds a role of a tenant."""
        return self.caller is not None and self.caller.user.role in TENANT_ROLES

    @property
    def session_secret(self) -> str:
        """What the cookie holds; empty where there is none."""
        return self.request.cookies.get(SESSION_COOKIE, "")

    @property
    def csrf(self) -> str:
        """The token that every form carries."""
        return csrf_of(self.session_secret) if self.caller is not None else ""

    @property
    def theme(self) -> str:
        """`system`, `light` or `dark`."""
        return theme_of(self.request.cookies)

    @property
    def path(self) -> str:
        """Of the page that is asked for, without its query."""
        return str(self.request.scope["path"])

    @property
    def places(self) -> list[Place]:
        """Where the navigation leads."""
        return [] if self.caller is None else places_of(self.caller)

    @property
    def place(self) -> Place | None:
        """The place that this page lies in."""
        return current_place(self.places, self.path)

    @property
    def secure(self) -> bool:
        """Whether cookies are to be kept to https."""
        return keeps_to_https(self.request)

    def show(self, template: str, *, status: int = 200, **context: Any) -> Answer:
        """A page. What was to be said once is said here."""
        flash = flash_of(self.request.cookies, self.csrf) if self.caller is not None else None
        html = self._draw(template, {"flash": flash, **context})
        return html_response(html, status=status, cookies=[no_flash_cookie()] if flash else None)

    def fragment(self, template: str, **context: Any) -> Answer:
        """A part of a page, for a live region."""
        return html_response(self._draw(template, context))

    def go(
        self, to: str, *, said: str | None = None, failed: bool = False, also: Cookie | None = None
    ) -> Answer:
        """Lead to another page of the console, where `said` is shown once; no secret is said."""
        cookies = [] if also is None else [also]
        if said is not None:
            flash = Flash("failed" if failed else "done", said)
            cookies.append(flash_cookie(flash, self.csrf))
        return redirect_response(to, cookies=cookies)

    async def form(self) -> Form:
        """What was sent. Raises Unprocessable for what no form of ours sends."""
        values: dict[str, list[str]] = {}
        for name, value in await form_fields(self.request):
            if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
                raise Unprocessable(f"{name}: must be a text", param=name)
            if "\x00" in value:
                raise Unprocessable(f"{name}: must have no null character", param=name)
            values.setdefault(name, []).append(value)
        return Form(values)

    def query(self) -> Form:
        """What the address says after its question mark, as a form of filters."""
        values: dict[str, list[str]] = {}
        for name, value in self.request.query_params.multi_items():
            values.setdefault(name, []).append(str(value).replace("\x00", ""))
        return Form(values)

    @property
    def simulates(self) -> bool:
        """Whether simulated workers serve here, so that figures may come of them."""
        return any(view.simulated for view in self.parts.fleet.views())

    @property
    def now_ms(self) -> int:
        """The time in Unix milliseconds, by the clock of this gateway."""
        return self.parts.clock.now_ms()

    @property
    def now(self) -> datetime:
        """The same in UTC."""
        return datetime.fromtimestamp(self.now_ms / 1000, tz=UTC)

    @property
    def today(self) -> date:
        """The day in UTC."""
        return self.now.date()

    def _draw(self, template: str, context: dict[str, Any]) -> str:
        return self._renderer.draw(template, {"visit": self, "now_ms": self.now_ms, **context})


Here = NamedDependency[Visit]
"""The `visit` that a page is given."""


async def known(reading: Awaitable[T]) -> T | None:
    """What was read, None while the store that knows it cannot be reached: the page then says so
    and shows the rest."""
    try:
        return await reading
    except StoreUnavailable:
        return None

"""Somebody who visits the console in a browser, without the browser."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from admin_api import PASSWORD

from gateway.administration import Administration
from gateway.domain.account import Role

ME = "cli:test"
OWN = {"origin": "http://weir.test", "sec-fetch-site": "same-origin"}
CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass
class Visitor:
    """A browser: it keeps cookies, and sends forms from the page that it saw last."""

    client: httpx.AsyncClient
    administration: Administration
    page: str = ""

    @property
    def csrf(self) -> str:
        """The token that the last page held, empty if it held none."""
        found = CSRF.search(self.page)
        return found[1] if found else ""

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """A page."""
        answer = await self.client.get(path, headers=headers)
        self.page = answer.text
        return answer

    async def post(
        self, path: str, fields: Mapping[str, str | list[str]] | None = None, **headers: str
    ) -> httpx.Response:
        """A form, with the token that the last page held, if it held any. A list is a name that is
        sent as often."""
        token = {"csrf": self.csrf} if self.csrf else {}
        return await self.client.post(
            path, data={**token, **(fields or {})}, headers={**OWN, **headers}
        )

    async def log_in(self, role: Role = Role.ADMIN, *, tenant_id: str | None = None) -> None:
        """As a new user of that role, and on to the first page."""
        email = f"{role}@weir.local"
        await self.administration.create_user(ME, email, role, PASSWORD, tenant_id=tenant_id)
        answer = await self.post("/console/login", {"email": email, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        home = await self.get("/console")
        await self.get(home.headers["location"])

    async def asks_wrongly(self, path: str, *, field: str | None = None) -> None:
        """A list with a filter that it cannot take: the page says so, and why at the field. Without
        one it is the cursor that is wrong."""
        answer = await self.get(path)
        assert answer.status_code == 422, path
        said = (
            "The page of the list is none that a page led to."
            if field is None
            else "What was asked for was not understood: see the fields below."
        )
        assert said in self.page, path
        assert field is None or f'id="f-{field}-error"' in self.page, path

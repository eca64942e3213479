"""Calls the admin API as a client does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
from litestar import Litestar

from gateway.administration import Administration
from gateway.domain.account import Role

PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class AdminApi:
    """Calls the admin API with a user's token."""

    client: httpx.AsyncClient
    administration: Administration
    tokens: dict[Role, str]
    """Filled as roles are first used: each user costs an Argon2 hash."""

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        role: Role = Role.ADMIN,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        below: str = "/admin/v1",
    ) -> httpx.Response:
        """One request below `below`; `raw` is sent as it is, `headers` replace the token."""
        content = raw if body is None else msgspec.json.encode(body)
        if headers is None:
            headers = {"authorization": f"Bearer {await self.token(role)}"}
        return await self.client.request(
            method, below + path, content=content, headers=httpx.Headers(headers)
        )

    async def token(self, role: Role) -> str:
        """A token of the user `<role>@weir.local`."""
        if role not in self.tokens:
            email = f"{role}@weir.local"
            await self.administration.create_user("cli:test", email, role, PASSWORD)
            self.tokens[role] = await self.administration.issue_token("cli:test", email, "test")
        return self.tokens[role]

    async def json(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer of a request that must succeed."""
        answer = await self.call(method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json()


def client_of(app: Litestar) -> httpx.AsyncClient:
    """A client that calls `app` in this process and event loop."""
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # two spellings of ASGI
    return httpx.AsyncClient(transport=transport, base_url="http://weir.test")

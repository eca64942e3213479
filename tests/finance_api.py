"""Calls the finance API as a client does."""

from dataclasses import dataclass
from typing import Any

import httpx
from admin_api import AdminApi
from invoice_world import InvoiceWorld

from billing.domain.invoicing.issuing import Blocker
from gateway.domain.account import Role


@dataclass(frozen=True)
class FinanceApi:
    """With a token of finance's."""

    admin: AdminApi
    world: InvoiceWorld
    expected: list[Blocker]
    """What the stores say may still come."""

    async def call(
        self, method: str, path: str, body: object = None, *, role: Role = Role.FINANCE, **more: Any
    ) -> httpx.Response:
        """The answer to a request below `/billing/v1`."""
        return await self.admin.call(method, path, body, role=role, below="/billing/v1", **more)

    async def ok(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer of one that must succeed."""
        answer = await self.call(method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def refused(
        self, method: str, path: str, body: object = None, *, status: int, raw: bytes | None = None
    ) -> Any:
        """The problem of one that must be refused with that status."""
        answer = await self.call(method, path, body, raw=raw)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.json()

    async def draft(self, month: str = "2026-01", **more: Any) -> Any:
        """The draft of acme's month."""
        return await self.ok("POST", "/invoices", {"tenant_id": "acme", "period": month, **more})

    async def issued(self, month: str = "2026-01") -> Any:
        """The month's invoice, drafted and issued."""
        drafted = await self.draft(month)
        return await self.ok("POST", f"/invoices/{drafted['id']}/issue")

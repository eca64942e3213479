"""A real gateway with two tenants, everything that a route can be asked about, and one caller of
each role, who calls with a token or in a session."""

import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
from admin_api import PASSWORD, client_of
from invoice_world import MODEL, InvoiceWorld, billed
from litestar import Litestar
from roles_table import CALLERS, Row

from gateway.administration import Administration
from gateway.administration.credentials import csrf_of
from gateway.app import Gateway, create_app
from gateway.domain.account import Role
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.permissions import Permission
from gateway.domain.tenant import BillingProfile, Model, Worker
from gateway.http.session_cookie import SESSION_COOKIE
from gateway.settings import Settings

ME = "cli:test"
ROLES = {caller: (Role(caller), None) for caller in CALLERS[1:5]} | {
    "tenant_admin": (Role.TENANT_ADMIN, "acme"),
    "tenant_member": (Role.TENANT_MEMBER, "acme"),
    "other_admin": (Role.TENANT_ADMIN, "globex"),
}
TOKENS: dict[str, Any] = {
    "prompt_tokens": 3_000_000,
    "cached_prompt_tokens": 10**6,
    "output_tokens": 500_000,
}
ABSENT = {
    "tenant_id": "nobody",
    "key_id": "key_00000000000000000000",
    "invoice_id": "0199f1e4-5f10-7c3e-8a52-000000000000",
    "invoice_number": "INV-2026-999999",
    "draft": "0199f1e4-5f10-7c3e-8a52-000000000001",
    "void": "0199f1e4-5f10-7c3e-8a52-000000000004",
    "credit_note_id": "0199f1e4-5f10-7c3e-8a52-000000000002",
    "credit_note_number": "CN-2026-999999",
    "request_id": "0199f1e4-5f10-7c3e-8a52-000000000003",
}
"""Names as those of the subjects, of nothing that there is."""
PROFILE = BillingProfile(legal_name="Acme S.A.", country="PL", tax_id="PL1", reference="PO-1")


@dataclass
class RolesWorld:
    """The gateway, who calls it, and the subjects of `acme` (of `globex` in `others`) by kind."""

    app: Litestar
    client: httpx.AsyncClient
    administration: Administration
    invoices: InvoiceWorld
    tokens: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    _new: "itertools.count[int]" = field(default_factory=itertools.count)

    async def ask(
        self,
        row: Row,
        *,
        headers: Mapping[str, str],
        subjects: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The answer to a row's question, asked with those headers: of the row's own subjects, or
        of those that are given by the names in its path."""
        path = row.path
        for name in re.findall(r"{(\w+)}", row.path):
            kind = row.subjects.get(name, name)
            named = await self.subject(kind) if subjects is None else subjects[kind]
            path = path.replace(f"{{{name}}}", named)
        sent = dict(headers)
        content = None
        if row.body is not None:
            text = msgspec.json.encode(row.body).decode().replace("{new}", str(next(self._new)))
            content = text.replace("{invoice}", self.subjects["invoice_id"]).encode()
        if content is not None and row.path.startswith("/console"):
            content = urlencode(msgspec.json.decode(content)).encode()
            sent["content-type"] = "application/x-www-form-urlencoded"
        self.client.cookies.clear()  # whoever asks brings their own
        return await self.client.request(row.method, path, content=content, headers=sent)

    async def subject(self, kind: str) -> str:
        """What a name in a path stands for."""
        fresh = self._fresh().get(kind)
        return self.subjects[kind] if fresh is None else await fresh()

    def bearer(self, caller: str) -> dict[str, str]:
        """The headers of a caller's request with a token."""
        token = self.tokens.get(caller)
        return {} if token is None else {"authorization": f"Bearer {token}"}

    async def scoped(self, caller: str, *scopes: Permission) -> dict[str, str]:
        """The headers of a caller's request with a token that is held to those scopes."""
        secret = await self.administration.issue_token(
            ME, f"{caller}@weir.local", f"scoped-{next(self._new)}", scopes=list(scopes)
        )
        return {"authorization": f"Bearer {secret}"}

    def in_session(self, caller: str) -> dict[str, str]:
        """The headers of a caller's request from a page of ours."""
        secret = self.sessions.get(caller)
        if secret is None:
            return {}
        return {
            "cookie": f"{SESSION_COOKIE}={secret}",
            "x-csrf-token": csrf_of(secret),
            "origin": "http://weir.test",
            "sec-fetch-site": "same-origin",
        }

    def _fresh(self) -> dict[str, Callable[[], Awaitable[str]]]:
        """Of what a route uses up or changes for good, another each time."""
        return {
            "key_id": lambda: self.key("acme"),
            "worker_id": self._worker,
            "hosted": self._hosted,
            "token": self._token_name,
            "session_id": self._session_id,
        }

    async def key(self, tenant_id: str) -> str:
        """A new key of that tenant."""
        key, _ = await self.administration.create_key(ME, tenant_id, "k", "batch")
        return key.id

    async def _worker(self) -> str:
        worker = Worker(id=f"worker-{next(self._new)}", model="m", url="http://127.0.0.1:1")
        return (await self.administration.register_worker(ME, worker)).id

    async def _hosted(self) -> str:
        name = f"hosted-{next(self._new)}"
        provider = HostedProvider(
            name=name, url="https://h.test", models={"m": HostedModel(name="m")}
        )
        await self.administration.register_hosted_provider(ME, provider, api_key=None)
        return name

    async def _token_name(self) -> str:
        name = f"token-{next(self._new)}"
        await self.administration.issue_token(ME, "victim@weir.local", name)
        return name

    async def _session_id(self) -> str:
        await self.administration.set_password(ME, "victim@weir.local", PASSWORD)
        await self.administration.log_in("victim@weir.local", PASSWORD, address=None)
        (session,) = await self.administration.list_sessions("victim@weir.local")
        return session.id


@asynccontextmanager
async def roles_world(
    database_url: str, redis_url: str, journal_dir: Path
) -> AsyncIterator[RolesWorld]:
    """The gateway as `weir serve` composes it, in this process, with everybody and everything."""
    gateway = Gateway(
        Settings(database_url=database_url, redis_url=redis_url, journal_dir=journal_dir)
    )
    # Rows make hundreds of workers, and nobody answers for them: to ask each as often as production
    # does took half of the time.
    gateway.fleet._interval_s = 60.0
    await gateway.open()
    app = create_app(gateway)
    try:
        async with client_of(app) as client:
            administration = Administration(gateway.postgres, redis=gateway.redis)
            world = RolesWorld(
                app, client, administration, InvoiceWorld(gateway.invoicing_postgres)
            )
            await _tenants(world)
            await _callers(world)
            await _money(world)
            yield world
    finally:
        await gateway.close()


async def _tenants(world: RolesWorld) -> None:
    known = world.administration
    for model in ("m", MODEL):
        await known.register_model(ME, Model(id=model, context_tokens=2048, max_output_tokens=512))
    await known.create_tenant(ME, "acme", "Acme", billing_profile=PROFILE)
    await known.create_tenant(ME, "globex", "Globex")
    world.subjects["tenant_id"], world.others["tenant_id"] = "acme", "globex"
    world.others["key_id"] = await world.key("globex")


async def _callers(world: RolesWorld) -> None:
    known = world.administration
    for caller, (role, tenant_id) in ROLES.items():
        email = f"{caller}@weir.local"
        await known.create_user(ME, email, role, PASSWORD, tenant_id=tenant_id)
        world.tokens[caller] = await known.issue_token(ME, email, "test")
        world.sessions[caller] = (await known.log_in(email, PASSWORD, address=None)).secret
    for email in ("victim@weir.local", "subject@weir.local"):
        user = await known.create_user(ME, email, Role.VIEWER, PASSWORD)
        if email.startswith("victim"):
            world.subjects["user_id"] = user.id


async def _money(world: RolesWorld) -> None:
    """An invoice that is issued, with a payment and a credit note, one that is void, a month that
    waits for its draft and one that has it; one of `globex`, with a credit note."""
    books, subjects = world.invoices, world.subjects
    await books.open()
    for month in (1, 2, 3, 4):
        record = await books.use(f"2026-0{month}-05T12:00:00Z", **TOKENS)
    subjects["request_id"] = str(record.request_id)
    other = await books.use("2026-01-05T12:00:00Z", tenant_id="globex", **TOKENS)
    world.others["request_id"] = str(other.request_id)
    issued = (await books.close("2026-01")).invoice
    void = (await books.close("2026-02")).invoice
    await books.void(void.id)
    draft = (await books.draft("2026-04")).invoice
    credited = (await books.credit(issued.id, (1, 1))).credit_note
    paid = (await books.pay(issued.id, 1, reference="to be reversed")).payment
    subjects |= {
        "invoice_id": str(issued.id),
        "invoice_number": issued.number or "",
        "void": str(void.id),
        "draft": str(draft.id),
        "credit_note_id": str(credited.id),
        "credit_note_number": credited.number,
        "payment_id": str(paid.id),
    }
    theirs = (await books.close("2026-01", billed("globex"))).invoice
    credit = (await books.credit(theirs.id, (1, 1))).credit_note
    world.others |= {
        "invoice_id": str(theirs.id),
        "invoice_number": theirs.number or "",
        "credit_note_id": str(credit.id),
        "credit_note_number": credit.number,
    }

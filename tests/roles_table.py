"""Who may call which route, written by hand: the routes of `/admin/v1`, `/billing/v1` and `/v1`.

Each row has one cell a caller, in the order of CALLERS: `ok`, or the status that they are refused
with. `ok` is an answer from beyond the guard: the statuses in `ok`, which say by hand what the
route answers to this question; never just anything that is no 403. The console's pages are in
`roles_table_console`; a test fails for a route that is in neither, and for a row without a route.

`{name}` in a path stands for a subject of the tenant `acme` that `roles_world` makes, fresh where
the route uses it up. `{new}` in a body is another text each time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CALLERS = (
    "anonymous",
    "admin",
    "operator",
    "finance",
    "viewer",
    "tenant_admin",
    "tenant_member",
    "other_admin",
)
"""The last is the admin of `globex`; the two before it are `acme`'s."""
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
USUAL = {"GET": (200,), "POST": (201,), "PUT": (200,), "PATCH": (200,), "DELETE": (204,)}


@dataclass(frozen=True)
class Row:
    """One question to a route, and what each caller is answered."""

    method: str
    path: str
    cells: str
    ok: tuple[int, ...]
    body: Mapping[str, Any] | None
    subjects: Mapping[str, str] = field(default_factory=dict)

    @property
    def route(self) -> tuple[str, str]:
        """The route that is asked, without what asks for a file or narrows."""
        return self.method, re.sub(r"(?<=})\.\w+$", "", self.path.partition("?")[0])

    @property
    def expected(self) -> dict[str, str]:
        """The cell of each caller."""
        return dict(zip(CALLERS, self.cells.split(), strict=True))


def row(
    method: str,
    path: str,
    cells: str,
    body: Mapping[str, Any] | None = None,
    *,
    ok: int | tuple[int, ...] = (),
    **subjects: str,
) -> Row:
    """A row; `subjects` says what a name in the path stands for where the name does not."""
    statuses = (ok,) if isinstance(ok, int) else ok or USUAL[method]
    return Row(method, path, cells, statuses, body, subjects)


LIMITS: dict[str, Any] = {"tpm": 1000}
KEY = {"name": "k", "class": "batch"}
HOSTED = {"name": "h{new}", "url": "https://h.test", "models": {"m": {"name": "m"}}}
USER = {"email": "u{new}@weir.local", "role": "viewer", "password": "correct horse battery"}
PRICE = {"model": "m", "plan": "p{new}", "input": "1", "output": "2"}
PAYMENT = {"amount": "0.01", "received_on": "2026-03-01", "reference": "bank 1"}
SELLER = {"name": "Weir Test GmbH", "country": "DE"}
COST = {
    "since": "2026-11-28T00:00:00Z",
    "until": "2026-11-30T00:00:00Z",
    "price_per_gpu_hour": "2.35",
    "gpus": "4",
}
ASKED = "&".join(f"{name}={value}" for name, value in COST.items())
START = "start_time=1767225600&limit=1"

#                                        nobody admin oper finan viewr t.adm t.mem other
ADMIN_ROWS = (
    row("GET", "/admin/v1/tenants",        "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/tenants",       "401   ok    403   403   403   403   403   403",
        {"id": "t{new}", "name": "T"}),
    row("GET", "/admin/v1/tenants/{tenant_id}",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("PATCH", "/admin/v1/tenants/{tenant_id}",
                                           "401   ok    403   403   403   403   403   403",
        {"name": "Acme {new}"}),
    row("GET", "/admin/v1/tenants/{tenant_id}/limits",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("PUT", "/admin/v1/tenants/{tenant_id}/limits",
                                           "401   ok    403   403   403   403   403   403",
        LIMITS),
    row("POST", "/admin/v1/tenants/{tenant_id}/limits/effect",
                                           "401   ok    ok    ok    ok    403   403   403",
        LIMITS, ok=200),
    row("PUT", "/admin/v1/limits",         "401   ok    403   403   403   403   403   403",
        {"changes": [{"tenant_id": "acme", "limits": LIMITS}]}),
    row("GET", "/admin/v1/tenants/{tenant_id}/keys",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("POST", "/admin/v1/tenants/{tenant_id}/keys",
                                           "401   ok    403   403   403   ok    403   404",
        KEY),
    row("GET", "/admin/v1/keys/{key_id}",  "401   ok    ok    ok    ok    ok    ok    404"),
    row("DELETE", "/admin/v1/keys/{key_id}",
                                           "401   ok    403   403   403   ok    403   404",
        ok=200),
    row("POST", "/admin/v1/keys/{key_id}/rotate",
                                           "401   ok    403   403   403   ok    403   404"),
    row("GET", "/admin/v1/keys/{key_id}/limits",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("PUT", "/admin/v1/keys/{key_id}/limits",
                                           "401   ok    403   403   403   ok    403   404",
        {"tpm": 10}),
    row("GET", "/admin/v1/models",         "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/models",        "401   ok    403   403   403   403   403   403",
        {"id": "model-{new}", "context_tokens": 2048, "max_output_tokens": 512}),
    row("GET", "/admin/v1/workers",        "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/workers",       "401   ok    403   403   403   403   403   403",
        {"id": "w-{new}", "model": "m", "url": "http://127.0.0.1:1"}),
    row("GET", "/admin/v1/workers/{worker_id}",
                                           "401   ok    ok    ok    ok    403   403   403"),
    row("DELETE", "/admin/v1/workers/{worker_id}",
                                           "401   ok    403   403   403   403   403   403"),
    row("POST", "/admin/v1/workers/{worker_id}/drain",
                                           "401   ok    ok    403   403   403   403   403",
        ok=200),
    row("GET", "/admin/v1/hosted",         "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/hosted",        "401   ok    403   403   403   403   403   403",
        HOSTED),
    row("GET", "/admin/v1/hosted/{name}",  "401   ok    ok    ok    ok    403   403   403",
        name="hosted"),
    row("DELETE", "/admin/v1/hosted/{name}",
                                           "401   ok    403   403   403   403   403   403",
        name="hosted"),
    row("GET", "/admin/v1/live",           "401   ok    ok    ok    ok    403   403   403"),
    row("GET", "/admin/v1/requests",       "401   ok    ok    ok    ok    ok    ok    ok"),
    row("GET", "/admin/v1/requests?tenant_id={tenant_id}",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("GET", "/admin/v1/requests/{request_id}",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("GET", "/admin/v1/users",          "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/users",         "401   ok    403   403   403   403   403   403",
        USER),
    row("GET", "/admin/v1/users/{user_id}",
                                           "401   ok    ok    ok    ok    403   403   403"),
    row("PATCH", "/admin/v1/users/{user_id}",
                                           "401   ok    403   403   403   403   403   403",
        {"role": "viewer"}),
    row("PUT", "/admin/v1/users/{user_id}/password",
                                           "401   ok    403   403   403   403   403   403",
        {"password": "correct horse {new}"}),
    row("GET", "/admin/v1/users/{user_id}/sessions",
                                           "401   ok    ok    ok    ok    403   403   403"),
    row("DELETE", "/admin/v1/users/{user_id}/sessions",
                                           "401   ok    403   403   403   403   403   403",
        ok=200),
    row("DELETE", "/admin/v1/users/{user_id}/sessions/{session_id}",
                                           "401   ok    403   403   403   403   403   403"),
    row("GET", "/admin/v1/users/{user_id}/tokens",
                                           "401   ok    ok    ok    ok    403   403   403"),
    row("POST", "/admin/v1/users/{user_id}/tokens",
                                           "401   ok    403   403   403   403   403   403",
        {"name": "t{new}"}),
    row("DELETE", "/admin/v1/users/{user_id}/tokens/{name}",
                                           "401   ok    403   403   403   403   403   403",
        name="token"),
    row("GET", "/admin/v1/session",        "401   ok    ok    ok    ok    ok    ok    ok"),
    row("POST", "/admin/v1/session",       "ok    ok    ok    ok    ok    ok    ok    ok",
        {"email": "subject@weir.local", "password": "correct horse battery"}),
    # A token is no session: 409. A password that is not theirs: 422.
    row("DELETE", "/admin/v1/session",     "401   ok    ok    ok    ok    ok    ok    ok",
        ok=409),
    row("PUT", "/admin/v1/session/password",
                                           "401   ok    ok    ok    ok    ok    ok    ok",
        {"current_password": "not the one", "password": "correct horse battery"}, ok=422),
    row("GET", "/admin/v1/audit",          "401   ok    ok    ok    ok    403   403   403"),
    row("GET", "/admin/v1/audit.csv",      "401   ok    ok    ok    ok    403   403   403"),
    row("GET", "/admin/v1/audit.jsonl",    "401   ok    ok    ok    ok    403   403   403"),
    row("GET", "/admin/v1/audit/verify",   "401   ok    ok    ok    ok    403   403   403"),
)  # fmt: skip

#                                        nobody admin oper finan viewr t.adm t.mem other
BILLING_ROWS = (
    row("GET", "/billing/v1/usage",        "401   ok    ok    ok    ok    ok    ok    ok"),
    row("GET", "/billing/v1/usage?tenant_id={tenant_id}&group_by=key",
                                           "401   ok    ok    ok    ok    ok    ok    404"),
    row("GET", "/billing/v1/prices",       "401   ok    403   ok    403   403   403   403"),
    row("POST", "/billing/v1/prices",      "401   ok    403   ok    403   403   403   403",
        PRICE),
    row("GET", "/billing/v1/plans",        "401   ok    403   ok    403   403   403   403"),
    row("POST", "/billing/v1/plans",       "401   ok    403   ok    403   403   403   403",
        {"tenant_id": "globex", "plan": None}),
    row("GET", "/billing/v1/invoices",     "401   ok    403   ok    403   ok    403   ok"),
    row("GET", "/billing/v1/invoices?tenant_id={tenant_id}",
                                           "401   ok    403   ok    403   ok    403   404"),
    # Of a month that was voided: drafted anew.
    row("POST", "/billing/v1/invoices",    "401   ok    403   ok    403   403   403   403",
        {"tenant_id": "acme", "period": "2026-03"}),
    row("GET", "/billing/v1/invoices/{invoice_id}",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/invoices/{invoice_id}.pdf",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/invoices/{invoice_id}.csv",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/invoices/{invoice_id}.json",
                                           "401   ok    403   ok    403   ok    403   404",
        invoice_id="invoice_number"),
    row("GET", "/billing/v1/invoices/{invoice_id}",
                                           "401   ok    403   ok    403   404   403   404",
        invoice_id="draft"),
    row("GET", "/billing/v1/invoices/{invoice_id}.pdf",
                                           "401   ok    403   ok    403   404   403   404",
        invoice_id="draft"),
    # Each of these again is the same.
    row("POST", "/billing/v1/invoices/{invoice_id}/issue",
                                           "401   ok    403   ok    403   403   403   403",
        ok=200),
    row("POST", "/billing/v1/invoices/{invoice_id}/void",
                                           "401   ok    403   ok    403   403   403   403",
        {"reason": "wrong address"}, ok=200, invoice_id="void"),
    row("POST", "/billing/v1/invoices/{invoice_id}/payments",
                                           "401   ok    403   ok    403   403   403   403",
        PAYMENT),
    row("POST", "/billing/v1/invoices/{invoice_id}/payments/{payment_id}/reverse",
                                           "401   ok    403   ok    403   403   403   403",
        {"reason": "bounced"}, ok=200),
    row("GET", "/billing/v1/credit-notes", "401   ok    403   ok    403   ok    403   ok"),
    row("GET", "/billing/v1/credit-notes?tenant_id={tenant_id}",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/credit-notes?invoice_id={invoice_id}",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/credit-notes?invoice_id={invoice_id}",
                                           "401   ok    403   ok    403   404   403   404",
        invoice_id="draft"),
    row("POST", "/billing/v1/credit-notes", "401   ok   403   ok    403   403   403   403",
        {"invoice_id": "{invoice}", "reason": "goodwill", "reference": "g1",
         "lines": [{"position": 1, "amount": "0.01"}]}),
    row("GET", "/billing/v1/credit-notes/{credit_note_id}",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/credit-notes/{credit_note_id}.pdf",
                                           "401   ok    403   ok    403   ok    403   404"),
    row("GET", "/billing/v1/credit-notes/{credit_note_id}.csv",
                                           "401   ok    403   ok    403   ok    403   404",
        credit_note_id="credit_note_number"),
    row("GET", "/billing/v1/seller",       "401   ok    403   ok    403   403   403   403"),
    row("PUT", "/billing/v1/seller",       "401   ok    403   ok    403   403   403   403",
        SELLER),
    row("GET", f"/billing/v1/unit-cost?{ASKED}",
                                           "401   ok    403   ok    403   403   403   403"),
    row("POST", "/billing/v1/unit-cost",   "401   ok    403   ok    403   403   403   403",
        COST, ok=200),
    row("GET", "/billing/v1/reconciliation",
                                           "401   ok    403   ok    403   403   403   403"),
    row("GET", "/billing/v1/budget-alerts",
                                           "401   ok    403   ok    403   403   403   403"),
)  # fmt: skip

#                                        nobody admin oper finan viewr t.adm t.mem other
OTHER_ROWS = (
    # Of `/v1` a user's token opens what is read of an organization, and nothing else.
    row("GET", f"/v1/organization/usage/completions?{START}",
                                           "401   ok    ok    ok    ok    ok    ok    ok"),
    row("GET", f"/v1/organization/usage/completions?{START}&project_ids={{tenant_id}}",
                                           "401   ok    ok    ok    ok    ok    ok    403"),
    row("GET", f"/v1/organization/costs?{START}",
                                           "401   ok    403   ok    403   ok    403   ok"),
    row("GET", f"/v1/organization/costs?{START}&project_ids={{tenant_id}}",
                                           "401   ok    403   ok    403   ok    403   403"),
    row("GET", "/v1/models",               "401   401   401   401   401   401   401   401"),
    row("GET", "/v1/limits",               "401   401   401   401   401   401   401   401"),
    row("GET", "/v1/usage",                "401   401   401   401   401   401   401   401"),
    row("POST", "/v1/chat/completions",    "401   401   401   401   401   401   401   401",
        {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    row("POST", "/v1/completions",         "401   401   401   401   401   401   401   401",
        {"model": "m", "prompt": "hi"}),
    row("GET", "/healthz",                 "ok    ok    ok    ok    ok    ok    ok    ok"),
    # Without a worker that answers it is not ready, and says so.
    row("GET", "/readyz",                  "ok    ok    ok    ok    ok    ok    ok    ok",
        ok=(200, 503)),
    row("GET", "/metrics",                 "ok    ok    ok    ok    ok    ok    ok    ok"),
    row("GET", "/openapi.json",            "ok    ok    ok    ok    ok    ok    ok    ok"),
)  # fmt: skip

API_ROWS = (*ADMIN_ROWS, *BILLING_ROWS, *OTHER_ROWS)

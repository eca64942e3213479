"""The pages that axe looks at, written by hand: `test_console_pages.py` looks at them, and
`tests/tidy/test_console_pages_seen.py` fails for a page of the console that is not here."""

from collections.abc import Mapping
from typing import NamedTuple

NOBODY = "nobody"
"""Who has not logged in."""
GLOBEX = "tenant_admin of globex"
"""Their invoices are issued here; those of `weir dev`'s own tenant are left to the stories."""


class Seen(NamedTuple):
    """A page as somebody sees it; what is in braces is made for the test, as `subjects` says."""

    role: str
    path: str
    status: int = 200


_ADMIN = (
    "/console/live",
    "/console/tenants",
    "/console/tenants?search=nobody-is-called-that",
    "/console/tenants/-/new",
    "/console/tenants/-/limits?tenant=acme&tenant=globex",
    "/console/tenants/acme",
    "/console/tenants/acme/profile",
    "/console/tenants/acme/limits",
    "/console/tenants/acme/keys",
    "/console/tenants/acme/keys/new",
    "/console/tenants/acme/keys/{key}",
    "/console/tenants/acme/keys/{key}/limits",
    "/console/usage",
    "/console/requests",
    "/console/requests/{request}",
    "/console/workers",
    "/console/workers/new",
    "/console/workers/models/new",
    "/console/money/prices",
    "/console/money/prices/new",
    "/console/money/prices/withdraw?model={model}&currency=USD&tenant_id=acme",
    "/console/money/prices/import",
    "/console/money/prices/plans",
    "/console/money/invoices",
    "/console/money/invoices/new",
    "/console/money/invoices/seller",
    "/console/money/invoices/{draft}",
    "/console/money/invoices/{draft}/issue",
    "/console/money/invoices/{invoice}",
    "/console/money/invoices/{invoice}/void",
    "/console/money/invoices/{invoice}/payments",
    "/console/money/invoices/{invoice}/payments/{payment}/take-back",
    "/console/money/invoices/{invoice}/credit",
    "/console/money/credit-notes",
    "/console/money/credit-notes/{credit_note}",
    "/console/money/budget-alerts",
    "/console/money/unit-cost",
    "/console/money/reconciliation",
    "/console/audit",
    "/console/audit/chain",
    "/console/users",
    "/console/users/new",
    "/console/users/{user}",
    "/console/account",
)
_TENANT_ADMIN = (
    "/console/own",
    "/console/own/keys",
    "/console/own/keys/new",
    "/console/own/keys/{key}",
    "/console/own/keys/{key}/limits",
    "/console/own/usage",
    "/console/requests",
    "/console/requests/{request}",
    "/console/own/invoices",
    "/console/own/credit-notes",
    "/console/account",
)
_GLOBEX = (
    "/console/own/invoices",
    "/console/own/invoices/{invoice}",
    "/console/own/credit-notes",
    "/console/own/credit-notes/{credit_note}",
)
PAGES = (
    Seen(NOBODY, "/console/login"),
    *(Seen("admin", path) for path in _ADMIN),
    Seen("admin", "/console/requests/find?id=no-id-is-like-that", 404),
    Seen("admin", "/console/there-is-no-such-page", 404),
    Seen("operator", "/console/workers"),
    Seen("operator", "/console/tenants/acme"),
    Seen("finance", "/console/tenants/acme/limits"),
    Seen("finance", "/console/money/invoices/{draft}"),
    Seen("viewer", "/console/live"),
    Seen("viewer", "/console/tenants/acme/limits"),
    Seen("viewer", "/console/audit"),
    Seen("viewer", "/console/requests/{request}"),
    Seen("viewer", "/console/users/new", 403),
    *(Seen("tenant_admin", path) for path in _TENANT_ADMIN),
    *(Seen(GLOBEX, path) for path in _GLOBEX),
    Seen("tenant_member", "/console/own"),
    Seen("tenant_member", "/console/own/keys"),
)
"""Each role's are together: who logs in stays until the next does."""

_IN_A_PAGE = "a part of a page, which is looked at with it"
_FILE = "a file"
NO_PAGES: Mapping[str, str] = {
    "/": "leads on to another page",
    "/live/now": _IN_A_PAGE,
    "/tenants/{tenant_id:str}/now": _IN_A_PAGE,
    "/requests/{request_id:str}/now": _IN_A_PAGE,
    "/usage/tenants": _IN_A_PAGE,
    "/workers/now": _IN_A_PAGE,
    "/own/now": _IN_A_PAGE,
    "/own/latest": _IN_A_PAGE,
    "/usage/groups.csv": _FILE,
    "/usage/over-time.csv": _FILE,
    "/own/usage/groups.csv": _FILE,
    "/own/usage/over-time.csv": _FILE,
}
"""Routes below `/console` that answer a GET with no page to look at, and why."""

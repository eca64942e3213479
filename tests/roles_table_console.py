"""Who may see which page of the console and send which of its forms, written by hand.

As `roles_table`, but that callers come in a session, and forms carry its CSRF token. `login` is
being led to the page where one logs in; `ok` of a form is being led on (303), or the form again
with what is wrong in it (422), as its row says by hand.
"""

from roles_table import Row, row

#                                        nobody admin oper finan viewr t.adm t.mem other
CONSOLE_ROWS: tuple[Row, ...] = (
    row("GET", "/console/static/{version}/{name}",
                                           "404   404   404   404   404   404   404   404",
        version="worker_id", name="worker_id"),
    row("GET", "/console",                 "login ok    ok    ok    ok    ok    ok    ok", ok=303),
    row("GET", "/console/{rest}",          "login 404   404   404   404   404   404   404",
        rest="worker_id"),
    row("POST", "/console/theme",          "ok    ok    ok    ok    ok    ok    ok    ok", ok=303),
    row("GET", "/console/login",           "ok    ok    ok    ok    ok    ok    ok    ok",
        ok=(200, 303)),
    row("POST", "/console/login",          "401   401   401   401   401   401   401   401"),
    row("GET", "/console/account",         "login ok    ok    ok    ok    ok    ok    ok"),

    row("GET", "/console/live",            "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/tenants",         "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/tenants/{tenant_id}/keys",
                                           "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/tenants/{tenant_id}/limits",
                                           "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/usage",           "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/requests/{request_id}",
                                           "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/workers",         "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/workers/now",     "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/workers/new",     "login ok    403   403   403   403   403   403"),
    row("POST", "/console/workers",        "login ok    403   403   403   403   403   403", ok=422),
    row("POST", "/console/workers/{worker_id}/drain",
                                           "login ok    ok    403   403   403   403   403", ok=303),
    row("POST", "/console/workers/{worker_id}/resume",
                                           "login ok    ok    403   403   403   403   403", ok=303),
    row("POST", "/console/workers/{worker_id}/remove",
                                           "login ok    403   403   403   403   403   403", ok=303),
    row("GET", "/console/money/prices",    "login ok    403   ok    403   403   403   403"),
    row("GET", "/console/money/invoices",  "login ok    403   ok    403   403   403   403"),
    row("GET", "/console/money/credit-notes",
                                           "login ok    403   ok    403   403   403   403"),
    row("GET", "/console/money/unit-cost", "login ok    403   ok    403   403   403   403"),
    row("GET", "/console/money/reconciliation",
                                           "login ok    403   ok    403   403   403   403"),
    row("GET", "/console/audit",           "login ok    ok    ok    ok    403   403   403"),
    row("GET", "/console/users",           "login ok    ok    ok    ok    403   403   403"),

    row("GET", "/console/own",             "login 403   403   403   403   ok    ok    ok"),
    row("GET", "/console/own/keys",        "login 403   403   403   403   ok    ok    ok"),
    row("GET", "/console/own/usage",       "login 403   403   403   403   ok    ok    ok"),
    row("GET", "/console/own/invoices",    "login 403   403   403   403   ok    403   ok"),

    # The last: it ends the session that all others come in.
    row("POST", "/console/logout",         "login ok    ok    ok    ok    ok    ok    ok", ok=303),
)  # fmt: skip

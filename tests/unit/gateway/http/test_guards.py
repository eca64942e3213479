"""Who may do what."""

from typing import Any
from unittest.mock import Mock

import pytest
from litestar import Request
from litestar.testing import RequestFactory

from gateway.administration.credentials import csrf_of
from gateway.domain.account import TENANT_ROLES, Role, User
from gateway.domain.permissions import PERMISSIONS_OF, Caller, Permission, permissions_of
from gateway.errors import Forbidden, NotFound, Unauthorized, WeirError
from gateway.http.access import Own, anyone, needs, owned_by, signed_in
from gateway.http.guards import check_own, may, permission_guard, tenant_of

READ, WRITE = needs(Permission.TENANTS_READ), needs(Permission.TENANTS_WRITE)
COOKIE = {"cookie": "weir_session=ws-good"}
TOKEN = {"authorization": "Bearer good"}
OWN_SITE = {**COOKIE, "host": "weir.test", "origin": "https://weir.test"}


class OneUser:
    """Knows the token `good` and the session `ws-good`."""

    def __init__(self, role: Role, scopes: frozenset[Permission] | None = None) -> None:
        tenant_id = "acme" if role in TENANT_ROLES else None
        self.user = User(
            id="user_1", email="a@b.c", role=role, tenant_id=tenant_id, created_at_ms=0
        )
        self.permissions = permissions_of(role, scopes)

    async def caller_by_token(self, secret: str) -> Caller | None:
        """The user, to whoever presents `good`."""
        if secret != "good":
            return None
        return Caller(user=self.user, permissions=self.permissions, via="token")

    async def caller_by_session(self, secret: str) -> Caller | None:
        """The user, to whoever presents `ws-good`."""
        if secret != "ws-good":
            return None
        permissions = PERMISSIONS_OF[self.user.role]
        return Caller(user=self.user, permissions=permissions, via="session")


async def owner_of(named: str) -> str | None:
    """Keys and invoices are named after their tenants."""
    return named.partition("-")[0] if "-" in named else None


def a_request(
    method: str = "GET",
    headers: dict[str, str] | None = None,
    *,
    query: dict[str, str | list[str]] | None = None,
    form: dict[str, str] | None = None,
    path: dict[str, str] | None = None,
) -> Request[Any, Any, Any]:
    """A request with that method, those headers and parameters."""
    factory = RequestFactory()
    if method == "GET":
        request = factory.get("/", headers=headers, query_params=query)
    else:
        media: Any = "application/x-www-form-urlencoded" if form else "application/json"
        request = factory.post(
            "/", headers=headers, query_params=query, data=form, request_media_type=media
        )
    request.scope["path_params"] = path or {}
    return request


async def judged(
    request: Request[Any, Any, Any], users: Role | OneUser, options: dict[str, Any]
) -> None:
    """Let a guard judge the request of a user."""
    known = OneUser(users) if isinstance(users, Role) else users
    owners = owned_by({Own.KEY: owner_of, Own.INVOICE: owner_of})
    handler = Mock(opt=options | owners)
    request.scope["route_handler"] = handler
    passing = permission_guard(known)(request, handler)
    assert passing is not None
    await passing


async def refusal(
    request: Request[Any, Any, Any], users: Role | OneUser, options: dict[str, Any]
) -> tuple[type[WeirError], str, str] | None:
    """How the guard refuses, and in which words; None where it does not."""
    try:
        await judged(request, users, options)
    except WeirError as error:
        return type(error), error.code, error.message
    return None


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer  ", "Basic good", "Bearer bad", "good"]
)
async def test_without_a_known_token_nobody_passes(header: str | None) -> None:
    """Unauthorized, whatever is wrong with it; no cookie helps a token that is wrong."""
    headers = {} if header is None else {"authorization": header, **COOKIE}
    with pytest.raises(Unauthorized):
        await judged(a_request("GET", headers), Role.ADMIN, READ)


@pytest.mark.parametrize("cookie", ["weir_session=ws-bad", "weir_session=", "other=ws-good"])
async def test_without_a_live_session_nobody_passes(cookie: str) -> None:
    """Unauthorized."""
    with pytest.raises(Unauthorized):
        await judged(a_request("GET", {"cookie": cookie}), Role.ADMIN, READ)


@pytest.mark.parametrize("headers", [TOKEN, COOKIE])
@pytest.mark.parametrize("permission", list(Permission))
@pytest.mark.parametrize("role", [role for role in Role if role not in TENANT_ROLES])
async def test_a_permission_is_the_roles_or_it_is_not(
    role: Role, permission: Permission, headers: dict[str, str]
) -> None:
    """Who passes is then known to the route, with what they may do."""
    request = a_request("GET", headers)
    if permission in PERMISSIONS_OF[role]:
        await judged(request, role, needs(permission))
        assert request.user.role is role
        assert may(request, permission)
        assert tenant_of(request) is None
    else:
        with pytest.raises(Forbidden):
            await judged(request, role, needs(permission))


async def test_a_scoped_token_does_what_its_scopes_say() -> None:
    """A scope that the role has and the token lacks is named."""
    reader = OneUser(Role.ADMIN, frozenset({Permission.TENANTS_READ}))
    await judged(a_request("GET", TOKEN), reader, READ)
    refused = await refusal(a_request("POST", TOKEN), reader, WRITE)
    assert refused == (Forbidden, "forbidden", "the token has not the scope tenants.write")


async def test_a_scoped_token_changes_nothing_of_its_users_account() -> None:
    """It could give itself more; it reads, and a whole token changes."""
    reader = OneUser(Role.ADMIN, frozenset({Permission.TENANTS_READ}))
    await judged(a_request("GET", TOKEN), reader, signed_in())
    await judged(a_request("POST", TOKEN), Role.VIEWER, signed_in())
    with pytest.raises(Forbidden):
        await judged(a_request("POST", TOKEN), reader, signed_in())


async def test_what_is_open_asks_nobody() -> None:
    """And knows nobody."""
    request = a_request("POST", {"authorization": "Bearer bad"})
    await judged(request, Role.ADMIN, anyone())
    assert request.scope.get("user") is None


async def test_a_route_that_names_no_permission_is_refused() -> None:
    """Whoever asks."""
    with pytest.raises(LookupError, match="names no permission"):
        await judged(a_request("GET", TOKEN), Role.ADMIN, {})


GOOD = csrf_of("ws-good")
CROSS = (
    {**OWN_SITE, "origin": "https://evil.test", "x-csrf-token": GOOD},
    {**OWN_SITE, "origin": "null", "x-csrf-token": GOOD},
    {**OWN_SITE, "origin": "//[", "x-csrf-token": GOOD},
    {**OWN_SITE, "sec-fetch-site": "cross-site", "x-csrf-token": GOOD},
    {**OWN_SITE, "sec-fetch-site": "same-site", "x-csrf-token": GOOD},
    {**OWN_SITE, "origin": "https://weir.test.evil.test", "x-csrf-token": GOOD},
)


@pytest.mark.parametrize("headers", CROSS)
async def test_another_site_changes_nothing_in_a_session(headers: dict[str, str]) -> None:
    """Even with the session's CSRF token; it may be read, which no other site sees."""
    refused = await refusal(a_request("POST", headers), Role.ADMIN, WRITE)
    assert refused is not None
    assert refused[:2] == (Forbidden, "cross_site")
    await judged(a_request("GET", headers), Role.ADMIN, READ)


@pytest.mark.parametrize("given", [None, "", "x", csrf_of("ws-other"), GOOD + "x"])
async def test_a_change_in_a_session_needs_its_csrf_token(given: str | None) -> None:
    """In a header or a form's field; a bearer token needs none, since no browser sends it alone."""
    header = {} if given is None else {"x-csrf-token": given}
    refused = await refusal(a_request("POST", OWN_SITE | header), Role.ADMIN, WRITE)
    assert refused is not None
    assert refused[:2] == (Forbidden, "csrf")
    form = {"name": "x"} if given is None else {"csrf": given}
    refused = await refusal(a_request("POST", OWN_SITE, form=form), Role.ADMIN, WRITE)
    assert refused is not None
    assert refused[:2] == (Forbidden, "csrf")
    await judged(a_request("POST", TOKEN), Role.ADMIN, WRITE)


async def test_its_own_pages_change_things_in_a_session() -> None:
    """With the token in a header or in a field."""
    headers = {**OWN_SITE, "sec-fetch-site": "same-origin"}
    await judged(a_request("POST", headers | {"x-csrf-token": GOOD}), Role.ADMIN, WRITE)
    await judged(a_request("POST", headers, form={"csrf": GOOD}), Role.ADMIN, WRITE)


@pytest.mark.parametrize("role", sorted(TENANT_ROLES))
async def test_a_tenants_role_reaches_no_route_that_is_not_marked(role: Role) -> None:
    """Forbidden, although it has the permission."""
    assert Permission.TENANTS_READ in PERMISSIONS_OF[role]
    with pytest.raises(Forbidden):
        await judged(a_request("GET", TOKEN, path={"tenant_id": "acme"}), role, READ)


async def test_a_tenants_role_reaches_what_is_its_own() -> None:
    """By its tenant's name, and by what belongs to it; it is held to that tenant."""
    for own, path in (
        (Own.TENANT, {"tenant_id": "acme"}),
        (Own.KEY, {"key_id": "acme-1"}),
        (Own.LIST, {}),
    ):
        request = a_request("GET", TOKEN, path=path)
        await judged(request, Role.TENANT_MEMBER, needs(Permission.KEYS_READ, own=own))
        assert tenant_of(request) == "acme"


async def test_of_another_tenant_it_is_told_what_it_is_told_of_nothing() -> None:
    """The same words for what another has and for what nobody has; staff pass."""
    asked = [
        (Own.TENANT, {"tenant_id": "globex"}),
        (Own.TENANT, {"tenant_id": "nobody"}),
        (Own.TENANT, {"tenant_id": "acm"}),
        (Own.KEY, {"key_id": "globex-1"}),
        (Own.KEY, {"key_id": "nothing"}),
    ]
    refusals = set()
    for own, path in asked:
        options = needs(Permission.KEYS_READ, own=own)
        refusals.add(await refusal(a_request("GET", TOKEN, path=path), Role.TENANT_ADMIN, options))
        await judged(a_request("GET", TOKEN, path=path), Role.VIEWER, options)
    assert refusals == {(NotFound, "not_found", "there is nothing of that name")}


@pytest.mark.parametrize("asked", ["globex", ["acme", "globex"], ["globex", "acme"], ""])
async def test_a_list_names_no_other_tenant(asked: str | list[str]) -> None:
    """However often the parameter is there."""
    options = needs(Permission.KEYS_READ, own=Own.LIST)
    await judged(a_request("GET", TOKEN, query={"tenant_id": "acme"}), Role.TENANT_ADMIN, options)
    with pytest.raises(NotFound):
        await judged(
            a_request("GET", TOKEN, query={"tenant_id": asked}), Role.TENANT_ADMIN, options
        )


async def test_what_a_parameter_names_is_the_tenants_own_too() -> None:
    """An invoice whose credit notes are asked for."""
    request = a_request("GET", TOKEN)
    await judged(request, Role.TENANT_ADMIN, needs(Permission.INVOICES_READ, own=Own.LIST))
    await check_own(request, Own.INVOICE, "acme-1")
    await check_own(request, Own.TENANT, "acme")
    for kind, named in ((Own.INVOICE, "globex-1"), (Own.INVOICE, "none"), (Own.TENANT, "globex")):
        with pytest.raises(NotFound, match="there is nothing of that name"):
            await check_own(request, kind, named)
    staff = a_request("GET", TOKEN)
    await judged(staff, Role.FINANCE, needs(Permission.INVOICES_READ, own=Own.LIST))
    await check_own(staff, Own.INVOICE, "globex-1")

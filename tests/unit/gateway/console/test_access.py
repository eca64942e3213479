"""Whom a page is for, and where the navigation leads them."""

import pytest

from gateway.console.access import (
    own_page,
    page,
    page_access,
    personal_page,
)
from gateway.console.navigation import STAFF_PLACES, TENANT_PLACES, current_place, places_of
from gateway.console.router import PAGES
from gateway.domain.account import TENANT_ROLES, Role, User
from gateway.domain.permissions import PERMISSIONS_OF, Caller, Permission


def caller(role: Role) -> Caller:
    """Somebody of that role, in a session."""
    tenant_id = "acme" if role in TENANT_ROLES else None
    user = User(id="u", email="u@weir.local", role=role, tenant_id=tenant_id, created_at_ms=0)
    return Caller(user=user, permissions=PERMISSIONS_OF[role], via="session")


def allowed(options: dict[str, object]) -> set[Role]:
    """The roles that a page lets in."""
    return {role for role in Role if page_access(options, "/").allows(caller(role))}


def test_a_page_of_staff_is_none_of_a_tenants() -> None:
    """Though its roles have that permission for what is their own."""
    assert allowed(page(Permission.KEYS_READ)) == set(Role) - TENANT_ROLES
    assert allowed(own_page(Permission.KEYS_READ)) == TENANT_ROLES


def test_a_permission_is_asked_besides() -> None:
    """Money is for admins and finance; a tenant's invoices for its admins."""
    assert allowed(page(Permission.MONEY_READ)) == {Role.ADMIN, Role.FINANCE}
    assert allowed(own_page(Permission.INVOICES_READ)) == {Role.TENANT_ADMIN}
    assert allowed(personal_page()) == set(Role)


def test_a_page_that_says_nothing_is_an_error() -> None:
    """So that none is open by being forgotten."""
    with pytest.raises(LookupError, match="/forgotten"):
        page_access({}, "/forgotten")


@pytest.mark.parametrize("role", Role)
def test_the_navigation_leads_nowhere_that_its_page_refuses(role: Role) -> None:
    """Each place is a page, and asks what the navigation asks."""
    opts = {
        "/console" + path: each.opt
        for each in PAGES
        for path in each.paths
        if "GET" in each.http_methods
    }
    for place in (*STAFF_PLACES, *TENANT_PLACES):
        shown = place in places_of(caller(role))
        assert page_access(opts[place.path], place.path).allows(caller(role)) == shown


def test_letters_and_paths_are_each_ones_own() -> None:
    """Of those that anybody sees together; `m` is the account."""
    for places in (STAFF_PLACES, TENANT_PLACES):
        letters = [place.letter for place in places]
        assert len(set(letters)) == len(letters)
        assert "m" not in letters


def test_a_page_lies_in_the_place_that_its_path_is_in() -> None:
    """The nearest, and no other that only begins alike."""
    staff, own = list(STAFF_PLACES), list(TENANT_PLACES)
    found = current_place(staff, "/console/tenants/acme/keys")
    assert found is not None
    assert found.name == "Tenants"
    found = current_place(own, "/console/own/keys/k1")
    assert found is not None
    assert found.name == "Keys"
    assert current_place(staff, "/console/livestock") is None

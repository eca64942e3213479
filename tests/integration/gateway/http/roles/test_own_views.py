"""What a tenant's people are shown of their own: nothing that is only for those who run it."""

from typing import Any

import pytest
from roles_world import RolesWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

STAFF = ("drafted_by", "issued_by", "voided_by", "void_reason", "override")


async def got(world: RolesWorld, caller: str, path: str) -> Any:
    """The decoded answer to a caller."""
    answer = await world.client.get(path, headers=world.bearer(caller))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_of_an_invoice_not_who_did_it_nor_what_is_left_to_do(world: RolesWorld) -> None:
    """The sums, the lines, the payments and the credit notes are the same; staff see the rest."""
    path = f"/billing/v1/invoices/{world.subjects['invoice_id']}"
    whole, own = await got(world, "finance", path), await got(world, "tenant_admin", path)
    assert whole["issued_by"] == "fin"
    assert [own[name] for name in STAFF] == [None] * len(STAFF)
    assert (own["blockers"], own["unbilled"]) == ([], [])
    assert whole["payments"][0]["noted_by"] == "fin"
    assert whole["credit_notes"][0]["issued_by"] == "fin"
    assert '"fin"' not in str(own).replace("'", '"')
    same = ("number", "total", "outstanding", "status", "lines", "taxes", "customer", "due_on")
    assert {name: own[name] for name in same} == {name: whole[name] for name in same}
    for kind in ("payments", "credit_notes"):
        assert [each["id"] for each in own[kind]] == [each["id"] for each in whole[kind]]


async def test_of_lists_and_credit_notes_the_same(world: RolesWorld) -> None:
    """Also where a void invoice says why."""
    for path in (
        "/billing/v1/invoices",
        "/billing/v1/credit-notes",
        f"/billing/v1/credit-notes/{world.subjects['credit_note_id']}",
        f"/billing/v1/invoices/{world.subjects['void']}",
    ):
        text = str(await got(world, "tenant_admin", path))
        assert "'fin'" in str(await got(world, "finance", path))
        assert "'fin'" not in text
        assert "wrong address" not in text


async def test_drafts_are_not_listed(world: RolesWorld) -> None:
    """Nor where they are asked for; void ones are, and finance sees all."""
    drafts = "/billing/v1/invoices?status=draft"
    assert [each["id"] for each in (await got(world, "finance", drafts))["items"]] == [
        world.subjects["draft"]
    ]
    assert (await got(world, "tenant_admin", drafts))["items"] == []
    own = (await got(world, "tenant_admin", "/billing/v1/invoices"))["items"]
    assert {each["status"] for each in own} == {"issued", "void"}


async def test_pages_of_own_invoices_are_full(world: RolesWorld) -> None:
    """A draft between them takes no place of a page."""
    page = await got(world, "tenant_admin", "/billing/v1/invoices?limit=1")
    found = [each["id"] for each in page["items"]]
    cursor = page["next_cursor"]
    page = await got(world, "tenant_admin", f"/billing/v1/invoices?limit=1&cursor={cursor}")
    found += [each["id"] for each in page["items"]]
    assert sorted(found) == sorted([world.subjects["invoice_id"], world.subjects["void"]])
    assert page["next_cursor"] is None


async def test_whom_it_is_billed_as_only_those_see_who_see_invoices(world: RolesWorld) -> None:
    """A tenant's admin does, a member does not."""
    path = "/admin/v1/tenants/acme"
    assert (await got(world, "tenant_admin", path))["billing_profile"]["tax_id"] == "PL1"
    assert (await got(world, "tenant_member", path))["billing_profile"] == {}
    assert (await got(world, "viewer", path))["billing_profile"]["tax_id"] == "PL1"

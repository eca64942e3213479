"""B10: a tenant's admin changes its keys' limits within its own, and no further."""

import json

import httpx
import pytest
import pytest_asyncio
from invoice_world import MODEL
from roles_world import ME, RolesWorld

from gateway.domain.tenant import RequestClass

pytestmark = pytest.mark.asyncio(loop_scope="module")

TENANT = {"tpm": 1000, "monthly_budget": "100.00", "models": {MODEL: {"rpm": 5}}}


@pytest_asyncio.fixture(loop_scope="module")
async def key_id(world: RolesWorld) -> str:
    """A key of `acme` for the model that has a price, with a budget that staff gave it."""
    known = world.administration
    key, _ = await known.create_key(ME, "acme", "k", RequestClass.BATCH, models=[MODEL])
    await known.put_key_limits(ME, key.id, {"monthly_budget": "10", "tpm": 5000})
    # As a tenant has them whose every model had a price when its budget was set.
    await world.invoices.sql(
        "UPDATE tenant SET limits = CAST(:limits AS jsonb) WHERE id = 'acme'",
        limits=json.dumps(TENANT),
    )
    return key.id


async def put(world: RolesWorld, key_id: str, limits: object, who: str) -> httpx.Response:
    """The answer to a change of the key's limits."""
    path = f"/admin/v1/keys/{key_id}/limits"
    return await world.client.request("PUT", path, json=limits, headers=world.bearer(who))


async def test_b10_a_budget_is_raised_within_the_tenants(world: RolesWorld, key_id: str) -> None:
    """B10: up to the last cent, and not a cent beyond; the answer names the ceiling."""
    answer = await put(world, key_id, {"monthly_budget": "100", "tpm": 5000}, "tenant_admin")
    assert (answer.status_code, answer.json()["monthly_budget"]) == (200, "100")
    refused = await put(world, key_id, {"monthly_budget": "100.01", "tpm": 5000}, "tenant_admin")
    assert (refused.status_code, refused.json()["param"]) == (422, "monthly_budget")
    assert "100.00 USD" in refused.json()["detail"]
    taken = await put(world, key_id, {"tpm": 5000}, "tenant_admin")
    assert (taken.status_code, taken.json()["param"]) == (422, "monthly_budget")
    assert (await world.administration.get_key_limits(key_id)).monthly_budget == "100"


async def test_b10_each_kind_has_its_ceiling(world: RolesWorld, key_id: str) -> None:
    """B10: what staff gave stays as it is, what is changed goes no further than the tenant's."""
    same = {"monthly_budget": "10", "tpm": 5000}
    assert (await put(world, key_id, same, "tenant_admin")).status_code == 200
    for fields, param in (
        ({"tpm": 4999}, "tpm"),
        ({"max_queued": 65}, "max_queued"),
        ({"weight": 2}, "weight"),
        ({"data_policy": "hosted_allowed"}, "data_policy"),
        ({"models": {MODEL: {"rpm": 6}}}, f"models.{MODEL}.rpm"),
        ({"models": {MODEL: {"tpm": 1001}}}, f"models.{MODEL}.tpm"),
    ):
        refused = await put(world, key_id, same | fields, "tenant_admin")
        assert (refused.status_code, refused.json()["param"]) == (422, param)
    assert (await put(world, key_id, same | {"tpm": 1000}, "tenant_admin")).status_code == 200
    assert (await put(world, key_id, same, "tenant_admin")).status_code == 422


async def test_b10_staff_go_beyond(world: RolesWorld, key_id: str) -> None:
    """B10: the tenant's own holds beside it anyway; members write nothing."""
    answer = await put(world, key_id, {"monthly_budget": "500", "tpm": 9999}, "admin")
    assert answer.status_code == 200
    assert (await put(world, key_id, {"tpm": 1}, "tenant_member")).status_code == 403


async def test_b10_the_change_is_in_the_audit_log(world: RolesWorld, key_id: str) -> None:
    """B10: under the name of who made it, and nothing of what was refused."""
    await put(world, key_id, {"monthly_budget": "101"}, "tenant_admin")
    await put(world, key_id, {"monthly_budget": "99"}, "tenant_admin")
    answer = await world.client.get(
        f"/admin/v1/audit?subject_id={key_id}&action=key.limits", headers=world.bearer("admin")
    )
    newest = answer.json()["items"][0]
    assert newest["actor"] == "user:tenant_admin@weir.local"
    assert (newest["before"]["monthly_budget"], newest["after"]["monthly_budget"]) == ("10", "99")

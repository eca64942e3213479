"""A tenant's admin makes, replaces, revokes and limits the tenant's own keys; a member looks."""

import re

import pytest
from console_visitor import ME, Visitor

from gateway.administration import Administration
from gateway.app import Gateway
from gateway.domain.account import Role

SECRET = re.compile(r"sk-weir-\w{20,}")
KEYS = "/console/own/keys"


@pytest.fixture
async def verbs(gateway: Gateway) -> Administration:
    """To prepare what is shown, and to look at what was done."""
    return Administration(gateway.postgres, redis=gateway.redis)


@pytest.fixture
async def admin(visitor: Visitor) -> Visitor:
    """Of `acme`."""
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    return visitor


def limits(**values: str) -> dict[str, str]:
    """A form of limits of a key in which nothing is limited but what is given."""
    boxes = ("max_sequences", "tpm", "rpm", "max_queued", "max_wait_ms", "max_prompt_tokens",
             "max_output_tokens", "monthly_budget")  # fmt: skip
    empty = {f"none.{name}": "1" for name in boxes if name not in values}
    return {"weight": "1", "data_policy": "", "cache_isolation": "tenant", **empty, **values}


async def test_a_secret_is_shown_once(admin: Visitor, verbs: Administration) -> None:
    """In the answer to the form, and on no page afterwards; the key works for that tenant."""
    await admin.get(f"{KEYS}/new")
    answer = await admin.post(KEYS, {"name": "robot", "class": "batch", **limits()})
    assert answer.status_code == 200, answer.text
    (secret,) = set(SECRET.findall(answer.text))
    assert answer.headers["cache-control"] == "no-store"
    (key,) = (await verbs.list_keys("acme")).items
    assert (key.name, key.secret_hint) == ("robot", secret[-4:])
    for path in (KEYS, f"{KEYS}/{key.id}"):
        page = (await admin.get(path)).text
        assert "robot" in page
        assert secret not in page


async def test_a_key_is_replaced_and_revoked(admin: Visitor, verbs: Administration) -> None:
    """Both work for the grace; revoked is for good."""
    old, _ = await verbs.create_key(ME, "acme", "robot", "batch")
    await admin.get(f"{KEYS}/{old.id}")
    answer = await admin.post(f"{KEYS}/{old.id}/rotate", {"grace": "2", "unit": "hours"})
    assert SECRET.search(answer.text)
    replaced = await verbs.get_key(old.id)
    assert replaced.rotated_to is not None
    assert replaced.expires_at_ms is not None
    answer = await admin.post(f"{KEYS}/{replaced.rotated_to}/revoke")
    assert answer.headers["location"] == f"{KEYS}/{replaced.rotated_to}"
    assert "revoked" in (await admin.get(answer.headers["location"])).text
    assert (await verbs.get_key(replaced.rotated_to)).revoked_at_ms is not None


async def test_a_keys_limits_go_up_to_the_tenants_own(
    admin: Visitor, verbs: Administration
) -> None:
    """Beyond it nothing is saved, and the ceiling is named at the field, with what was typed."""
    await verbs.put_tenant_limits(ME, "acme", {"tpm": 1_000})
    key, _ = await verbs.create_key(ME, "acme", "robot", "batch")
    await admin.get(f"{KEYS}/{key.id}/limits")
    sent = {"version": str(key.limits_version), **limits(tpm="5000")}
    answer = await admin.post(f"{KEYS}/{key.id}/limits", sent)
    assert answer.status_code == 422
    assert "1000" in answer.text
    assert 'value="5000"' in answer.text
    assert (await verbs.get_key(key.id)).limits.tpm is None
    answer = await admin.post(f"{KEYS}/{key.id}/limits", {**sent, "tpm": "900"})
    assert answer.status_code == 303, answer.text
    assert (await verbs.get_key(key.id)).limits.tpm == 900


async def test_an_effect_is_shown_and_nothing_saved(admin: Visitor, verbs: Administration) -> None:
    """Without what the whole pool can hold, which is not the tenant's to know (INV-12)."""
    key, _ = await verbs.create_key(ME, "acme", "robot", "batch")
    await admin.get(f"{KEYS}/{key.id}/limits")
    sent = {"version": str(key.limits_version), **limits(tpm="123")}
    answer = await admin.post(f"{KEYS}/{key.id}/limits/effect", sent)
    assert answer.status_code == 200
    assert "123" in answer.text
    assert "Promised" not in answer.text
    assert (await verbs.get_key(key.id)).limits.tpm is None


async def test_a_member_looks_and_changes_nothing(visitor: Visitor, verbs: Administration) -> None:
    """No control is shown, and each form is refused."""
    key, _ = await verbs.create_key(ME, "acme", "robot", "batch")
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    for path in (KEYS, f"{KEYS}/{key.id}", f"{KEYS}/{key.id}/limits"):
        page = (await visitor.get(path)).text
        assert "robot" in page, path
        assert f'action="{KEYS}' not in page, path
    for path in (KEYS, f"{KEYS}/{key.id}/rotate", f"{KEYS}/{key.id}/revoke",
                 f"{KEYS}/{key.id}/limits", f"{KEYS}/{key.id}/limits/effect"):  # fmt: skip
        assert (await visitor.post(path, {"grace": "1", "unit": "hours"})).status_code == 403
    assert await verbs.get_key(key.id) == key


async def test_a_form_without_its_token_is_refused(admin: Visitor, verbs: Administration) -> None:
    """As from another site."""
    key, _ = await verbs.create_key(ME, "acme", "robot", "batch")
    admin.page = ""
    assert (await admin.post(f"{KEYS}/{key.id}/revoke")).status_code == 403
    assert (await verbs.get_key(key.id)).revoked_at_ms is None

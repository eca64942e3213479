"""Tenants, limits and their keys on the admin API."""

import re
from typing import Any

from admin_api import AdminApi

DEFAULTS: dict[str, Any] = {
    "max_sequences": None,
    "tpm": None,
    "rpm": None,
    "max_queued": 64,
    "max_wait_ms": 10_000,
    "weight": 1,
    "monthly_budget": None,
    "max_prompt_tokens": None,
    "max_output_tokens": None,
    "data_policy": "self_hosted_only",
    "cache_isolation": "tenant",
    "models": {},
}
OF_A_KEY = {**DEFAULTS, **dict.fromkeys(("max_queued", "max_wait_ms", "data_policy"))}
"""What a key leaves to its tenant."""


NARROWED: dict[str, Any] = dict.fromkeys(
    (
        *("max_sequences", "tpm", "rpm"),
        *("monthly_budget", "max_prompt_tokens", "max_output_tokens"),
    )
)


async def test_a_tenant_is_created_changed_and_listed(api: AdminApi) -> None:
    """201 with what is stored; PATCH changes what it names."""
    created = await api.call(
        "POST",
        "/tenants",
        {
            "id": "globex",
            "name": "Globex",
            "currency": "JPY",
            "time_zone": "Asia/Tokyo",
            "billing_profile": {"legal_name": "Globex KK", "address": ["1-1", "Tokyo"]},
            "limits": {"tpm": 5},
        },
    )
    assert created.status_code == 201
    assert created.json() == await api.json("GET", "/tenants/globex")
    assert created.json()["limits"] == {**DEFAULTS, "tpm": 5}
    changed = await api.json("PATCH", "/tenants/globex", {"suspended": True, "name": "G"})
    assert (changed["suspended"], changed["name"], changed["currency"]) == (True, "G", "JPY")
    assert changed["billing_profile"]["legal_name"] == "Globex KK"
    listed = await api.json("GET", "/tenants")
    assert [tenant["id"] for tenant in listed["items"]] == ["acme", "globex"]
    assert listed["next_cursor"] is None


async def test_billing_terms_are_part_of_the_profile(api: AdminApi) -> None:
    """Written and read as one; a PATCH of the profile replaces it whole, and is in the audit
    log."""
    profile = {
        "legal_name": "Acme GmbH",
        "tax_rate": "19",
        "tax_name": "VAT",
        "tax_note": "Reverse charge",
        "payment_terms_days": 14,
        "reference": "PO-1",
    }
    changed = await api.json("PATCH", "/tenants/acme", {"billing_profile": profile})
    assert changed["billing_profile"] == profile
    assert (await api.json("GET", "/tenants/acme"))["billing_profile"] == profile
    entry = (await api.json("GET", "/audit?action=tenant.update"))["items"][0]
    assert entry["after"]["billing_profile"] == profile
    less = await api.json("PATCH", "/tenants/acme", {"billing_profile": {"tax_rate": "7.5"}})
    assert less["billing_profile"] == {"tax_rate": "7.5"}
    for wrong, param in (
        ({"tax_rate": 19}, "billing_profile.tax_rate"),
        ({"tax_rate": "19 %"}, "billing_profile.tax_rate"),
        ({"payment_terms_days": 366}, "billing_profile.payment_terms_days"),
        ({"country": "Germany"}, "billing_profile.country"),
        ({"vat": "19"}, "billing_profile.vat"),
    ):
        refused = await api.call("PATCH", "/tenants/acme", {"billing_profile": wrong})
        assert (refused.status_code, refused.json()["param"]) == (422, param)
    assert (await api.json("GET", "/tenants/acme"))["billing_profile"] == {"tax_rate": "7.5"}


async def test_lists_are_paged_by_an_opaque_cursor(api: AdminApi) -> None:
    """Every tenant once, however small the pages."""
    for number in range(4):
        await api.json("POST", "/tenants", {"id": f"t{number}", "name": "T"})
    found: list[str] = []
    path = "/tenants?limit=2"
    while path:
        page = await api.json("GET", path)
        found += [tenant["id"] for tenant in page["items"]]
        cursor = page["next_cursor"]
        path = f"/tenants?limit=2&cursor={cursor}" if cursor else ""
    assert found == ["acme", "t0", "t1", "t2", "t3"]


async def test_put_limits_answers_with_what_is_stored(api: AdminApi) -> None:
    """The whole is replaced; absent fields take their defaults; what GET gives PUT takes."""
    await api.json("PUT", "/tenants/acme/limits", {"tpm": 9, "rpm": 9})
    stored = await api.json(
        "PUT",
        "/tenants/acme/limits",
        {"max_sequences": 1, "tpm": None, "max_queued": 0, "models": {"m": {"tpm": 5}}},
    )
    assert stored == {
        **DEFAULTS,
        "max_sequences": 1,
        "max_queued": 0,
        "models": {"m": {**NARROWED, "tpm": 5}},
    }
    assert await api.json("GET", "/tenants/acme/limits") == stored
    assert await api.json("PUT", "/tenants/acme/limits", stored) == stored


REFUSED_LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"max_sequences": -1}, "max_sequences"),
    ({"max_sequences": "8"}, "max_sequences"),
    ({"max_sequences": 1.5}, "max_sequences"),
    ({"max_sequences": True}, "max_sequences"),
    ({"max_sequences": 2**60}, "max_sequences"),
    ({"weight": 0}, "weight"),
    ({"max_queued": None}, "max_queued"),
    ({"tpm": 9, "max_wait_ms": None}, "max_wait_ms"),
    ({"tokens_per_minute": 5}, "tokens_per_minute"),
    ({"monthly_budget": "500.00"}, "monthly_budget"),
    ({"monthly_budget": 500}, "monthly_budget"),
    ({"data_policy": "anywhere"}, "data_policy"),
    ({"models": {"gpt-5": {"tpm": 5}}}, "models.gpt-5"),
    ({"models": {"m": {"tpm": -5}}}, "models.m.tpm"),
    ({"models": {"m": {"weight": 5}}}, "models.m.weight"),
    ({"models": []}, "models"),
]


async def test_limits_that_cannot_be_enforced_are_422(
    api: AdminApi,
) -> None:
    """Each names its field, and what is in force stays."""
    await api.json("PUT", "/tenants/acme/limits", {"tpm": 9})
    for body, param in REFUSED_LIMITS:
        refused = await api.call("PUT", "/tenants/acme/limits", body)
        assert refused.status_code == 422, body
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["param"] == param
        assert param in refused.json()["detail"]
    assert await api.json("GET", "/tenants/acme/limits") == {**DEFAULTS, "tpm": 9}


async def test_b04_b27_a_budget_is_set_read_and_taken_away(api: AdminApi) -> None:
    """B27: refused without a price in the tenant's currency; R14: read back as it was written; B04:
    null takes it away, and so does a PUT that does not name it."""
    budget = {"monthly_budget": "500.00", "models": {"m": {"monthly_budget": "0.5"}}}
    refused = await api.call("PUT", "/tenants/acme/limits", budget)
    assert (refused.status_code, refused.json()["param"]) == (422, "monthly_budget")
    assert "m has no price in USD" in refused.json()["detail"]
    price = {"model": "m", "input": "0.40", "output": "1.60"}
    await api.call("POST", "/prices", price, below="/billing/v1")
    for path in ("/tenants/acme/limits", await a_key(api)):
        stored = await api.json("PUT", path, budget)
        assert stored["monthly_budget"] == "500.00"
        assert stored["models"] == {"m": {**NARROWED, "monthly_budget": "0.5"}}
        assert await api.json("GET", path) == stored
        gone = await api.json("PUT", path, {**budget, "monthly_budget": None})
        assert gone == {**stored, "monthly_budget": None}
        assert (await api.json("PUT", path, {}))["models"] == {}


async def a_key(api: AdminApi) -> str:
    """The path of a new key's limits."""
    key = await api.json("POST", "/tenants/acme/keys", {"name": "k", "class": "batch"})
    return f"/keys/{key['id']}/limits"


async def test_a_keys_limits_leave_the_data_policy_to_its_tenant(api: AdminApi) -> None:
    """null unless the key has one of its own; a tenant's is always said."""
    key = await api.json("POST", "/tenants/acme/keys", {"name": "k", "class": "batch"})
    path = f"/keys/{key['id']}/limits"
    assert key["limits"]["data_policy"] is None
    assert await api.json("GET", path) == OF_A_KEY
    strict = await api.json("PUT", path, {"data_policy": "self_hosted_only"})
    assert strict["data_policy"] == "self_hosted_only"
    assert (await api.json("PUT", path, {}))["data_policy"] is None
    allowed = await api.json("PUT", "/tenants/acme/limits", {"data_policy": "hosted_allowed"})
    assert allowed["data_policy"] == "hosted_allowed"
    assert await api.json("PUT", "/tenants/acme/limits", {}) == DEFAULTS


async def test_a_keys_limits_leave_waiting_to_its_tenant(api: AdminApi) -> None:
    """null unless the key has some of its own, whatever else is limited; never a tenant's."""
    key = await api.json("POST", "/tenants/acme/keys", {"name": "k", "class": "interactive"})
    assert key["limits"] == OF_A_KEY
    path = f"/keys/{key['id']}/limits"
    assert await api.json("PUT", path, {"tpm": 100}) == {**OF_A_KEY, "tpm": 100}
    own = await api.json("PUT", path, {"max_queued": 0, "max_wait_ms": 10_000})
    assert own == {**OF_A_KEY, "max_queued": 0, "max_wait_ms": 10_000}
    assert (await api.json("GET", f"/keys/{key['id']}"))["limits"] == own
    kept = await api.json("PUT", path, {**own, "max_queued": None})
    assert kept == {**OF_A_KEY, "max_wait_ms": 10_000}
    assert await api.json("GET", path) == kept
    for body in ({"max_queued": -1}, {"max_queued": "64"}):
        refused = await api.call("PUT", path, body)
        assert (refused.status_code, refused.json()["param"]) == (422, "max_queued")
    made = {"id": "globex", "name": "G", "limits": {"max_wait_ms": None}}
    refused = await api.call("POST", "/tenants", made)
    assert (refused.status_code, refused.json()["param"]) == (422, "max_wait_ms")


async def test_a_secret_is_shown_once(api: AdminApi) -> None:
    """In the answer to its creation, and in no list, look, log or audit entry afterwards."""
    body = {
        "name": "ci",
        "class": "batch",
        "expires_at": "2100-01-01T01:00:00+01:00",
        "models": ["m"],
        "ip_allow": ["10.0.0.0/8"],
    }
    created = await api.call("POST", "/tenants/acme/keys", body)
    assert created.status_code == 201
    assert created.headers["x-weir-unconfirmed"] == "unknown; no_store"
    key = created.json()
    secret = key.pop("secret")
    assert re.fullmatch(r"sk-weir-[0-9A-Za-z]{43}", secret)
    assert (key["class"], key["models"], key["ip_allow"]) == ("batch", ["m"], ["10.0.0.0/8"])
    assert key["expires_at"] == "2100-01-01T00:00:00.000Z"
    assert await api.json("GET", f"/keys/{key['id']}") == key
    listed = await api.call("GET", "/tenants/acme/keys")
    assert listed.json()["items"] == [key]
    audit = await api.call("GET", "/audit")
    for answer in (listed, audit):
        assert secret not in answer.text
        assert "digest" not in answer.text


async def test_a_key_is_rotated_and_revoked(api: AdminApi) -> None:
    """Rotation gives a new key with a new secret; DELETE revokes and is harmless twice."""
    old = await api.json("POST", "/tenants/acme/keys", {"name": "ci", "class": "batch"})
    await api.json("PUT", f"/keys/{old['id']}/limits", {"rpm": 3})
    rotated = await api.call("POST", f"/keys/{old['id']}/rotate", {"grace_ms": 60_000})
    assert rotated.status_code == 201
    assert rotated.headers["x-weir-unconfirmed"] == "unknown; no_store"
    new = rotated.json()
    assert new["secret"] != old["secret"]
    assert new["limits"] == {**OF_A_KEY, "rpm": 3}
    assert (await api.json("GET", f"/keys/{old['id']}"))["rotated_to"] == new["id"]
    again = await api.call("POST", f"/keys/{old['id']}/rotate")
    assert again.status_code == 409
    for _ in range(2):
        revoked = await api.call("DELETE", f"/keys/{new['id']}")
        assert revoked.status_code == 200
        assert revoked.json() == {
            "id": new["id"],
            "revoked_at": (await api.json("GET", f"/keys/{new['id']}"))["revoked_at"],
            "confirmed": [],
            "unconfirmed": None,
            "unknown": "no_store",
        }
        assert revoked.json()["revoked_at"] is not None
    assert await api.json("GET", f"/keys/{new['id']}/limits") == {**OF_A_KEY, "rpm": 3}


async def test_every_change_names_who_made_it(api: AdminApi) -> None:
    """The audit log has the token's user, and before and after."""
    await api.json("PUT", "/tenants/acme/limits", {"tpm": 9})
    entry = (await api.json("GET", "/audit?limit=1"))["items"][0]
    assert entry["actor"] == "user:admin@weir.local"
    assert (entry["action"], entry["subject_id"]) == ("tenant.limits", "acme")
    assert (entry["before"]["tpm"], entry["after"]["tpm"]) == (None, 9)
    found = await api.json("GET", "/audit?action=tenant.limits&subject_id=acme")
    assert found["items"] == [entry]

"""Keys in the console: made, shown once, replaced with grace, revoked, limited."""

import re

from console_visitor import ME, Visitor

from gateway.console.limit_form import FIELDS
from gateway.domain.tenant import ApiKey

PATH = "/console/tenants/acme/keys"
SECRET = re.compile(r'<code id="secret">([^<]+)</code>')
ONCE = re.compile(r'name="once" value="([^"]+)"')
CONFIRMED = re.compile(r"(The gateway goes by it|Which gateways .* not known|Not conf)")
NO_LIMITS = {f"none.{field.name}": "1" for field in FIELDS if field.key_none} | {
    "weight": "1",
    "cache_isolation": "tenant",
}


async def made(visitor: Visitor, tenant_id: str = "acme") -> ApiKey:
    """A key that is there already."""
    key, _ = await visitor.administration.create_key(ME, tenant_id, "k", "interactive")
    return key


async def test_a_key_is_made_and_its_secret_shown_once(visitor: Visitor) -> None:
    """With class, models, networks, expiry and limits; no other page has the secret."""
    await visitor.log_in()
    await visitor.get(f"{PATH}/new")
    fields = NO_LIMITS | {
        "name": "nightly",
        "class": "batch",
        "models": "m",
        "ip_allow": "10.0.0.0/8, 192.0.2.7",
        "expires_at": "2099-01-31T18:00",
        "tpm": "900",
    }
    del fields["none.tpm"]
    answer = await visitor.post(PATH, fields)
    assert answer.status_code == 200
    assert CONFIRMED.search(answer.text)
    found = SECRET.search(answer.text)
    assert found is not None
    (key,) = (await visitor.administration.list_keys("acme")).items
    assert found[1].endswith(key.secret_hint)
    assert (key.name, key.request_class, key.models) == ("nightly", "batch", ("m",))
    assert key.ip_allow == ("10.0.0.0/8", "192.0.2.7/32")
    assert (key.expires_at_ms, key.limits.tpm) == (4_073_565_600_000, 900)
    for path in (PATH, f"{PATH}/{key.id}", "/console/tenants/acme", f"{PATH}/{key.id}/limits"):
        page = (await visitor.get(path)).text
        assert found[1] not in page
        assert "nightly" in page


async def test_a_page_with_a_secret_that_is_reloaded_makes_no_second_key(visitor: Visitor) -> None:
    """It leads to the one that was made, and says so; another form makes another, also of the same
    name, and so does the same value with another tenant."""
    await visitor.log_in()
    fields = NO_LIMITS | {"name": "nightly", "class": "batch"}
    once = ONCE.search((await visitor.get(f"{PATH}/new")).text)
    assert once is not None
    again = fields | {"once": once[1]}
    assert SECRET.search((await visitor.post(PATH, again)).text)
    (key,) = (await visitor.administration.list_keys("acme")).items
    for _ in range(2):
        answer = await visitor.post(PATH, again)
        assert answer.headers["location"] == f"{PATH}/{key.id}"
        page = (await visitor.get(answer.headers["location"])).text
        assert "was made already, and none was made now" in page
        await visitor.administration.revoke_key(ME, key.id)
    assert (await visitor.administration.list_keys("acme")).items == [
        await visitor.administration.get_key(key.id)
    ]
    other = ONCE.search((await visitor.get(f"{PATH}/new")).text)
    assert other is not None
    assert SECRET.search((await visitor.post(PATH, fields | {"once": other[1]})).text)
    await visitor.administration.create_tenant(ME, "beta", "Beta")
    answer = await visitor.post("/console/tenants/beta/keys", again)
    assert SECRET.search(answer.text)


async def test_what_is_wrong_with_a_new_key_stands_at_its_field(visitor: Visitor) -> None:
    """And none is made."""
    await visitor.log_in()
    await visitor.get(f"{PATH}/new")
    good = NO_LIMITS | {"name": "k", "class": "batch"}
    for name, value in (
        ("name", ""),
        ("ip_allow", "10.0.0.1/8"),
        ("expires_at", "2001-01-01T00:00"),
        ("expires_at", "soon"),
        ("class", "express"),
        ("weight", "0"),
    ):
        answer = await visitor.post(PATH, good | {name: value})
        assert answer.status_code == 422, name
        assert f'id="f-{name}-error"' in answer.text, name
    answer = await visitor.post(PATH, good | {"models": "gone"})
    assert "there is no model gone" in answer.text
    assert (await visitor.administration.list_keys("acme")).items == []


async def test_a_key_is_replaced_and_both_work_for_a_while(visitor: Visitor) -> None:
    """B09: the page says until when; a key is replaced once."""
    key = await made(visitor)
    await visitor.log_in()
    await visitor.get(f"{PATH}/{key.id}")
    for grace in ("", "x", "91"):
        answer = await visitor.post(f"{PATH}/{key.id}/rotate", {"grace": grace, "unit": "days"})
        assert answer.status_code == 422
        assert 'id="f-grace-error"' in answer.text
    answer = await visitor.post(f"{PATH}/{key.id}/rotate", {"grace": "2", "unit": "hours"})
    assert SECRET.search(answer.text)
    assert CONFIRMED.search(answer.text)
    assert "works too until" in answer.text
    old = await visitor.administration.get_key(key.id)
    assert old.rotated_to is not None
    assert old.expires_at_ms is not None
    page = (await visitor.get(f"{PATH}/{key.id}")).text
    assert "being replaced" in page
    assert "both keys work until then" in page
    answer = await visitor.post(f"{PATH}/{key.id}/rotate", {"grace": "2", "unit": "hours"})
    assert (answer.status_code, "already" in answer.text) == (409, True)


async def test_a_key_is_revoked_and_who_goes_by_it_is_said(visitor: Visitor) -> None:
    """B07: of every gateway that is there; the page offers nothing more to do with it."""
    key = await made(visitor)
    await visitor.log_in()
    page = (await visitor.get(f"{PATH}/{key.id}")).text
    assert "It cannot be undone." in page
    answer = await visitor.post(f"{PATH}/{key.id}/revoke")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}/{key.id}")
    assert (await visitor.administration.get_key(key.id)).revoked_at_ms is not None
    page = (await visitor.get(f"{PATH}/{key.id}")).text
    assert re.search(rf"is revoked\. {CONFIRMED.pattern}", page)
    assert "/rotate" not in page
    assert "/revoke" not in page


async def test_limits_of_a_key_are_saved_by_who_runs_weir(visitor: Visitor) -> None:
    """With their effect shown, and the key's page shows them."""
    key = await made(visitor)
    await visitor.log_in()
    path = f"{PATH}/{key.id}/limits"
    page = (await visitor.get(path)).text
    version = re.search(r'name="version" value="(\d+)"', page)
    assert version is not None
    fields = {**NO_LIMITS, "version": version[1], "rpm": "30"}
    del fields["none.rpm"]
    answer = await visitor.post(f"{path}/effect", fields)
    assert answer.status_code == 200
    assert "Save these limits" in answer.text
    assert "Promised to all" not in answer.text
    assert (await visitor.post(path, fields)).status_code == 303
    assert (await visitor.administration.get_key(key.id)).limits.rpm == 30
    assert "Requests per minute" in (await visitor.get(f"{PATH}/{key.id}")).text


async def test_another_tenants_key_is_no_key(visitor: Visitor) -> None:
    """Below the wrong tenant it is not there, whatever is asked of it; nothing is changed."""
    await visitor.administration.create_tenant(ME, "globex", "Globex")
    key = await made(visitor, "globex")
    await visitor.log_in()
    await visitor.get(PATH)
    for path in ("", "/limits"):
        assert (await visitor.get(f"{PATH}/{key.id}{path}")).status_code == 404
    for path in ("/revoke", "/rotate", "/limits", "/limits/effect"):
        answer = await visitor.post(f"{PATH}/{key.id}{path}", {"grace": "0", "unit": "hours"})
        assert answer.status_code == 404, path
    assert (await visitor.administration.get_key(key.id)).revoked_at_ms is None

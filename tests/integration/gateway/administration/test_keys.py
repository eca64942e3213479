"""API keys: the secret appears once, rotation overlaps, revocation is for good."""

import hashlib
import re
import time

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration import Administration, keys
from gateway.domain.tenant import Limits, RequestClass
from gateway.errors import Conflict, NotFound, Unprocessable

ME = "cli:test"
HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
async def acme(administration: Administration) -> None:
    """The tenant that the keys belong to."""
    await administration.create_tenant(ME, "acme", "Acme")


async def test_the_secret_is_in_one_answer_only(
    administration: Administration, engine: AsyncEngine
) -> None:
    """No table holds it: only its SHA-256, and four characters of it."""
    key, secret = await administration.create_key(ME, "acme", "k", "batch")
    assert re.fullmatch(r"sk-weir-[0-9A-Za-z]{43}", secret)
    assert key.digest == hashlib.sha256(secret.encode()).digest()
    assert key.secret_hint == secret[-4:]
    rotated, second = await administration.rotate_key(ME, key.id, grace_ms=HOUR_MS)
    token = await issued_token(administration)
    async with engine.connect() as db:
        tables = await db.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        )
        contents = [
            str((await db.execute(text(f"SELECT t::text FROM {table} t"))).all())
            for table in tables.scalars().all()
        ]
    stored = "\n".join(contents)
    assert key.id in stored
    assert rotated.id in stored
    for private in (secret, second, token):
        assert private not in stored
    audited = str((await administration.list_audit()).items)
    assert key.digest.hex() not in audited
    assert key.secret_hint not in audited


async def issued_token(administration: Administration) -> str:
    """A token of a new user's."""
    await administration.create_user(ME, "a@b.c", "admin", "correct horse battery")
    return await administration.issue_token(ME, "a@b.c", "t")


async def test_a_key_is_created_as_given(administration: Administration) -> None:
    """Scopes are stored, networks in canonical form."""
    expires_at_ms = time.time_ns() // 1_000_000 + HOUR_MS
    key, _ = await administration.create_key(
        ME,
        "acme",
        "k",
        RequestClass.INTERACTIVE,
        expires_at_ms=expires_at_ms,
        models=["m", "m"],
        ip_allow=["10.0.0.0/8", "2001:DB8::1"],
    )
    assert await administration.get_key(key.id) == key
    assert (key.models, key.ip_allow) == (("m",), ("10.0.0.0/8", "2001:db8::1/128"))
    assert key.expires_at_ms == expires_at_ms
    assert key.limits == Limits()


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"request_class": "premium"}, "class"),
    ({"models": ["gpt-5"]}, "models"),
    ({"models": ["m"] * 101}, "models"),
    ({"ip_allow": ["10.0.0.1/8"]}, "ip_allow"),
    ({"ip_allow": ["example.com"]}, "ip_allow"),
    ({"ip_allow": []}, "ip_allow"),
    ({"ip_allow": [f"10.0.0.{each}" for each in range(101)]}, "ip_allow"),
    ({"expires_at_ms": 1}, "expires_at"),
    ({"secret": "sk-weir-short"}, "secret"),
    ({"secret": "x" * 60}, "secret"),
    ({"name": ""}, "name"),
]


async def test_what_cannot_be_a_key_is_refused(
    administration: Administration,
) -> None:
    """Unprocessable names the field; a secret that was brought is not repeated."""
    for fields, param in REFUSED:
        wanted: dict[str, object] = {"name": "k", "request_class": "batch", **fields}
        with pytest.raises(Unprocessable) as refused:
            await administration.create_key(ME, "acme", **wanted)  # type: ignore[arg-type]  # on purpose
        assert refused.value.param == param
        assert str(fields.get("secret", "\0")) not in refused.value.message
    assert (await administration.list_keys("acme")).items == []


async def test_a_given_secret_is_taken_once(administration: Administration) -> None:
    """A second key of the same secret is a Conflict, whosever it would be."""
    secret = "sk-weir-" + "a" * 43
    _, kept = await administration.create_key(ME, "acme", "k", "batch", secret=secret)
    assert kept == secret
    await administration.create_tenant(ME, "globex", "Globex")
    with pytest.raises(Conflict):
        await administration.create_key(ME, "globex", "k", "batch", secret=secret)


async def test_rotation_keeps_settings_and_lets_the_old_key_live_on(
    administration: Administration,
) -> None:
    """The new key has the old one's scopes and limits; the old one expires after the grace."""
    old, secret = await administration.create_key(
        ME, "acme", "k", "batch", models=["m"], ip_allow=["10.0.0.0/8"]
    )
    await administration.put_key_limits(ME, old.id, Limits(tpm=7))
    before_ms = time.time_ns() // 1_000_000
    new, new_secret = await administration.rotate_key(ME, old.id, grace_ms=HOUR_MS)
    assert new_secret != secret
    assert (new.name, new.models, new.ip_allow) == (old.name, old.models, old.ip_allow)
    assert (new.request_class, new.limits) == (old.request_class, Limits(tpm=7))
    assert (new.expires_at_ms, new.revoked_at_ms) == (None, None)
    ending = await administration.get_key(old.id)
    assert ending.rotated_to == new.id
    assert ending.expires_at_ms is not None
    assert 0 <= ending.expires_at_ms - before_ms - HOUR_MS < 5_000
    with pytest.raises(Conflict):
        await administration.rotate_key(ME, old.id, grace_ms=0)


async def test_a_tenant_has_so_many_live_keys(
    administration: Administration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may be rotated all the same, and without a grace whenever it must be. What is revoked or
    has expired counts for nothing, nor does what others have."""
    monkeypatch.setattr(keys, "LIVE_KEYS_MAX", 3)
    await administration.create_tenant(ME, "globex", "Globex")
    await administration.create_key(ME, "globex", "k", "batch")
    made = [(await administration.create_key(ME, "acme", "k", "batch"))[0].id for _ in range(3)]
    with pytest.raises(Conflict, match="acme has 3 keys: revoke some first"):
        await administration.create_key(ME, "acme", "k", "batch")
    await administration.rotate_key(ME, made[0], grace_ms=HOUR_MS)
    with pytest.raises(Conflict, match="acme has 3 keys"):
        await administration.rotate_key(ME, made[1], grace_ms=HOUR_MS)
    await administration.rotate_key(ME, made[1], grace_ms=0)
    await administration.revoke_key(ME, made[2])
    with pytest.raises(Conflict):
        await administration.create_key(ME, "acme", "k", "batch")
    await administration.revoke_key(ME, made[0])
    await administration.create_key(ME, "acme", "k", "batch")


async def test_rotation_never_prolongs_a_key(administration: Administration) -> None:
    """A key that expires before the grace ends still expires then."""
    soon_ms = time.time_ns() // 1_000_000 + 60_000
    old, _ = await administration.create_key(ME, "acme", "k", "batch", expires_at_ms=soon_ms)
    new, _ = await administration.rotate_key(ME, old.id, grace_ms=HOUR_MS)
    assert (await administration.get_key(old.id)).expires_at_ms == soon_ms
    assert new.expires_at_ms == soon_ms


async def test_revocation_is_for_good(administration: Administration) -> None:
    """Harmless twice, at the first one's time; a revoked key is not rotated."""
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    first = await administration.revoke_key(ME, key.id)
    second = await administration.revoke_key(ME, key.id)
    assert first.revoked_at_ms is not None
    assert first == second
    with pytest.raises(Conflict):
        await administration.rotate_key(ME, key.id, grace_ms=0)
    actions = [entry.action for entry in (await administration.list_audit()).items]
    assert actions.count("key.revoke") == 1


async def test_keys_are_listed_by_tenant(administration: Administration) -> None:
    """In pages; another tenant's are not among them; an unknown tenant is NotFound."""
    made = [(await administration.create_key(ME, "acme", "k", "batch"))[0].id for _ in range(3)]
    await administration.create_tenant(ME, "globex", "Globex")
    await administration.create_key(ME, "globex", "k", "batch")
    first = await administration.list_keys("acme", 2)
    rest = await administration.list_keys("acme", 2, first.next_cursor)
    assert [key.id for key in first.items + rest.items] == sorted(made)
    assert rest.next_cursor is None
    with pytest.raises(NotFound):
        await administration.list_keys("nobody")
    with pytest.raises(NotFound):
        await administration.revoke_key(ME, "key_unknown")


async def test_a_key_is_made_with_limits(administration: Administration) -> None:
    """B10: of its tenant's own people none above the tenant's; then none is made."""
    await administration.put_tenant_limits(ME, "acme", {"tpm": 100})
    key, _ = await administration.create_key(ME, "acme", "k", "batch", limits={"tpm": 500})
    assert (await administration.get_key(key.id)).limits == Limits(tpm=500)
    with pytest.raises(Unprocessable, match="at most 100, the tenant's own") as refused:
        await administration.create_key(
            ME, "acme", "k", "batch", limits={"tpm": 101}, within_tenant=True
        )
    assert refused.value.param == "tpm"
    with pytest.raises(Unprocessable, match=r"models\.gone"):
        await administration.create_key(
            ME, "acme", "k", "batch", limits={"models": {"gone": {"tpm": 1}}}
        )
    assert len((await administration.list_keys("acme")).items) == 1

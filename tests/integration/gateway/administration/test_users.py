"""Users and their tokens."""

import time

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.errors import Conflict, NotFound, Unprocessable

ME = "cli:test"
PASSWORD = "correct horse battery"


async def test_a_password_is_stored_as_argon2id(
    administration: Administration, engine: AsyncEngine
) -> None:
    """The hash verifies the password and is Argon2id's."""
    await administration.create_user(ME, "Admin@weir.local", Role.ADMIN, PASSWORD)
    async with engine.connect() as db:
        stored = (await db.execute(text("SELECT password_hash FROM app_user"))).scalar_one()
    assert stored.startswith("$argon2id$")
    assert PasswordHasher().verify(stored, PASSWORD)
    audited = str((await administration.list_audit()).items)
    assert stored not in audited
    assert PASSWORD not in audited


async def test_an_address_is_taken_once_in_whatever_case(administration: Administration) -> None:
    """And found in whatever case."""
    await administration.create_user(ME, "Admin@weir.local", "admin", PASSWORD)
    with pytest.raises(Conflict):
        await administration.create_user(ME, "admin@WEIR.local", "viewer", PASSWORD)
    token = await administration.issue_token(ME, "ADMIN@weir.local", "t")
    user = await administration.user_by_token(token)
    assert user is not None
    assert (user.email, user.role) == ("Admin@weir.local", Role.ADMIN)


REFUSED = [
    ("nobody", "admin", PASSWORD, "email"),
    ("a b@c.d", "admin", PASSWORD, "email"),
    ("a@b@c.d", "admin", PASSWORD, "email"),
    ("a@b.c", "root", PASSWORD, "role"),
    ("a@b.c", "admin", "short", "password"),
    ("a@b.c", "admin", "x" * 1025, "password"),
]


async def test_who_cannot_be_a_user_is_refused(
    administration: Administration,
) -> None:
    """Unprocessable names the field and does not repeat the password."""
    for email, role, password, param in REFUSED:
        with pytest.raises(Unprocessable) as refused:
            await administration.create_user(ME, email, role, password)
        assert refused.value.param == param
        assert password not in refused.value.message


async def test_a_token_ends_with_its_expiry_revocation_or_user(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Each of them makes it nobody's; the name of a dead token is free again."""
    await administration.create_user(ME, "a@b.c", "admin", PASSWORD)
    now_ms = time.time_ns() // 1_000_000
    lasting = await administration.issue_token(ME, "a@b.c", "lasting")
    ending = await administration.issue_token(ME, "a@b.c", "ending", expires_at_ms=now_ms + 60_000)
    later = Administration(engine, now_ms=lambda: now_ms + 60_001)
    assert await administration.user_by_token(ending) is not None
    assert await later.user_by_token(ending) is None
    assert await later.user_by_token(lasting) is not None
    with pytest.raises(Conflict):
        await administration.issue_token(ME, "a@b.c", "lasting")
    await administration.revoke_token(ME, "a@b.c", "lasting")
    assert await administration.user_by_token(lasting) is None
    with pytest.raises(NotFound):
        await administration.revoke_token(ME, "a@b.c", "lasting")
    with pytest.raises(Unprocessable):
        await administration.issue_token(ME, "a@b.c", "last/ing")
    renewed = await administration.issue_token(ME, "a@b.c", "lasting")
    assert (await administration.update_user(ME, "a@b.c", disabled=True)).disabled
    assert await administration.user_by_token(renewed) is None
    await administration.update_user(ME, "a@b.c", disabled=False, role="viewer")
    user = await administration.user_by_token(renewed)
    assert user is not None
    assert user.role is Role.VIEWER


async def test_a_given_token_is_taken_once(administration: Administration) -> None:
    """As `weir dev` brings its own; a short one is refused, an unknown one is nobody's."""
    await administration.create_user(ME, "a@b.c", "admin", PASSWORD)
    secret = "given-token-of-24-letters"
    assert await administration.issue_token(ME, "a@b.c", "one", secret=secret) == secret
    with pytest.raises(Conflict):
        await administration.issue_token(ME, "a@b.c", "two", secret=secret)
    with pytest.raises(Unprocessable):
        await administration.issue_token(ME, "a@b.c", "three", secret="short")
    assert await administration.user_by_token("unknown") is None
    assert await administration.user_by_token("\x00\udcff") is None


async def test_users_are_found_by_id_and_listed(administration: Administration) -> None:
    """Both give the same; an unknown id is NotFound."""
    made = await administration.create_user(ME, "a@b.c", "finance", PASSWORD)
    assert await administration.get_user(made.id) == made
    assert (await administration.list_users()).items == [made]
    with pytest.raises(NotFound):
        await administration.get_user("user_unknown")
    with pytest.raises(NotFound):
        await administration.issue_token(ME, "x@y.z", "t")

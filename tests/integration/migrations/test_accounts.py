"""Accounts beside the release before, and what is left of them where one goes back to it."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.migrate import downgrade, upgrade

ME = "cli:test"
BEFORE = "0015"
PASSWORD = "correct horse battery"
STATES = """
SELECT email, role, disabled_at IS NOT NULL, coalesce(bool_and(revoked_at IS NOT NULL), false)
FROM app_user LEFT JOIN user_token ON user_id = app_user.id GROUP BY 1, 2, 3 ORDER BY 1
"""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


async def inserted(engine: AsyncEngine, columns: str, values: str) -> None:
    """A user, written as it stands."""
    async with engine.begin() as db:
        await db.execute(text(f"INSERT INTO app_user ({columns}) VALUES ({values})"))


async def test_the_release_before_still_makes_users_and_tokens(engine: AsyncEngine) -> None:
    """Without the new columns; this one knows them."""
    await inserted(
        engine, "id, email, role, password_hash", "'user_1', 'a@weir.local', 'operator', 'x'"
    )
    async with engine.begin() as db:
        await db.execute(
            text(
                "INSERT INTO user_token (digest, user_id, name)"
                " VALUES (sha256('wu-early'), 'user_1', 't')"
            )
        )
    caller = await Administration(engine).caller_by_token("wu-early")
    assert caller is not None
    assert (caller.user.role, caller.user.tenant_id) == (Role.OPERATOR, None)


@pytest.mark.parametrize(
    ("role", "tenant"),
    [
        ("tenant_admin", "NULL"),
        ("tenant_member", "NULL"),
        ("viewer", "'acme'"),
        ("tenant_admin", "'nobody'"),
        ("root", "NULL"),
    ],
)
async def test_a_tenants_role_and_its_tenant_go_together(
    engine: AsyncEngine, role: str, tenant: str
) -> None:
    """Whoever writes."""
    await Administration(engine).create_tenant(ME, "acme", "Acme")
    with pytest.raises(IntegrityError):
        await inserted(
            engine,
            "id, email, role, password_hash, tenant_id",
            f"'user_1', 'a@weir.local', '{role}', 'x', {tenant}",
        )


async def test_going_back_gives_nobody_more_than_they_had(
    engine: AsyncEngine, database_url: str
) -> None:
    """Whom the release before cannot hold to a tenant or to scopes does not come in there."""
    administration = Administration(engine)
    await administration.create_tenant(ME, "acme", "Acme")
    await administration.create_user(ME, "a@acme", "tenant_admin", PASSWORD, tenant_id="acme")
    await administration.create_user(ME, "b@weir.local", "admin", PASSWORD)
    await administration.create_user(ME, "c@weir.local", "admin", PASSWORD)
    await administration.issue_token(ME, "b@weir.local", "held", scopes=["usage.read"])
    await administration.issue_token(ME, "c@weir.local", "whole")
    await downgrade(database_url, BEFORE)
    expected = [
        ("a@acme", "viewer", True, False),
        ("b@weir.local", "admin", False, True),
        ("c@weir.local", "admin", False, False),
    ]
    async with engine.connect() as db:
        assert [tuple(row) for row in await db.execute(text(STATES))] == expected
    await upgrade(database_url)
    async with engine.connect() as db:
        assert [tuple(row) for row in await db.execute(text(STATES))] == expected

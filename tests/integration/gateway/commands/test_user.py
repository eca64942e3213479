"""Users' accounts by command line."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from weir_command import Weir

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.account import Session

EMAIL = "ada@weir.local"
PASSWORD = "correct horse battery"
OTHER_PASSWORD = "another long password"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The password that commands take."""
    monkeypatch.setenv("WEIR_USER_PASSWORD", PASSWORD)


def begin_session(database_url: str, password: str = PASSWORD) -> Session:
    """A session of EMAIL's, as the console begins one."""

    async def begin(engine: AsyncEngine) -> Session:
        try:
            return await Administration(engine).log_in(EMAIL, password, address="10.0.0.9")
        finally:
            await engine.dispose()

    return asyncio.run(begin(async_engine(database_url, pooled=False)))


def test_a_role_of_a_tenant_needs_one(weir: Weir) -> None:
    """Made with it, moved between roles with it."""
    weir.ok("tenant", "create", "acme")
    create = ("user", "create", EMAIL, "--role", "tenant_admin")
    assert "tenant_id" in weir.refused(*create)
    made = weir.json(*create, "--tenant", "acme")
    assert (made["role"], made["tenant_id"]) == ("tenant_admin", "acme")
    assert "--role" in weir.refused("user", "role", EMAIL)
    moved = weir.json("user", "role", EMAIL, "--role", "tenant_member")
    assert (moved["role"], moved["tenant_id"]) == ("tenant_member", "acme")
    assert weir.json("user", "role", EMAIL, "--role", "viewer")["tenant_id"] is None


def test_tokens_with_scopes_are_listed_without_secrets(weir: Weir) -> None:
    """One line each; the role's permissions are all that there is to choose from."""
    weir.ok("user", "create", EMAIL, "--role", "viewer")
    token = ("user", "token", EMAIL, "--name")
    secret = weir.json(*token, "ci", "--scope", "usage.read", "--scope", "fleet.read")["token"]
    assert "invoices.read" in weir.refused(*token, "x", "--scope", "invoices.read")
    (listed,) = weir.json("user", "tokens", EMAIL)["items"]
    assert (listed["name"], listed["scopes"]) == ("ci", ["fleet.read", "usage.read"])
    table = weir.ok("user", "tokens", EMAIL)
    assert [line.split()[0] for line in table.splitlines()] == ["NAME", "ci"]
    assert secret not in table + str(listed)
    assert "nobody" in weir.refused("user", "tokens", "nobody@weir.local")


def test_sessions_are_listed_and_ended(weir: Weir, database_url: str) -> None:
    """One by its id, or all; a new password ends them too."""
    weir.ok("user", "create", EMAIL, "--role", "viewer")
    secrets = [begin_session(database_url).secret for _ in range(3)]
    listed = weir.json("user", "sessions", EMAIL)["items"]
    assert [each["address"] for each in listed] == ["10.0.0.9"] * 3
    assert not any(secret in str(listed) for secret in secrets)
    assert weir.ok("user", "sessions", EMAIL).splitlines()[1].split()[0] == listed[0]["id"]
    one = ("user", "logout", EMAIL, "--session", listed[0]["id"])
    assert weir.json(*one) == {"email": EMAIL, "ended": 1}
    assert listed[0]["id"] in weir.refused(*one)
    assert weir.json("user", "logout", EMAIL)["ended"] == 2
    assert weir.json("user", "sessions", EMAIL)["items"] == []
    begin_session(database_url)
    weir.ok("user", "password", EMAIL, "--password", OTHER_PASSWORD)
    assert weir.json("user", "sessions", EMAIL)["items"] == []
    begin_session(database_url, OTHER_PASSWORD)
    audited = weir.ok("audit", "list", "--json")
    assert not any(secret in audited for secret in (PASSWORD, OTHER_PASSWORD, *secrets))

"""Users and their tokens."""

import asyncio
import time

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.permissions import PERMISSIONS_OF, Permission
from gateway.errors import Conflict, NotFound, Unprocessable

ME = "cli:test"
PASSWORD = "correct horse battery"


@pytest.mark.usefixtures("full_cost_passwords")
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
    caller = await administration.caller_by_token(token)
    assert caller is not None
    assert (caller.user.email, caller.user.role) == ("Admin@weir.local", Role.ADMIN)


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
    await administration.create_user(ME, "a@b.c", "finance", PASSWORD)
    now_ms = time.time_ns() // 1_000_000
    lasting = await administration.issue_token(ME, "a@b.c", "lasting")
    ending = await administration.issue_token(ME, "a@b.c", "ending", expires_at_ms=now_ms + 60_000)
    later = Administration(engine, now_ms=lambda: now_ms + 60_001)
    assert await administration.caller_by_token(ending) is not None
    assert await later.caller_by_token(ending) is None
    assert await later.caller_by_token(lasting) is not None
    with pytest.raises(Conflict):
        await administration.issue_token(ME, "a@b.c", "lasting")
    await administration.revoke_token(ME, "a@b.c", "lasting")
    assert await administration.caller_by_token(lasting) is None
    with pytest.raises(NotFound):
        await administration.revoke_token(ME, "a@b.c", "lasting")
    with pytest.raises(Unprocessable):
        await administration.issue_token(ME, "a@b.c", "last/ing")
    renewed = await administration.issue_token(ME, "a@b.c", "lasting")
    assert (await administration.update_user(ME, "a@b.c", disabled=True)).disabled
    assert await administration.caller_by_token(renewed) is None
    await administration.update_user(ME, "a@b.c", disabled=False, role="viewer")
    caller = await administration.caller_by_token(renewed)
    assert caller is not None
    assert caller.user.role is Role.VIEWER


async def test_a_given_token_is_taken_once(administration: Administration) -> None:
    """As `weir dev` brings its own; a short one is refused, an unknown one is nobody's."""
    await administration.create_user(ME, "a@b.c", "admin", PASSWORD)
    secret = "given-token-of-24-letters"
    assert await administration.issue_token(ME, "a@b.c", "one", secret=secret) == secret
    with pytest.raises(Conflict):
        await administration.issue_token(ME, "a@b.c", "two", secret=secret)
    with pytest.raises(Unprocessable):
        await administration.issue_token(ME, "a@b.c", "three", secret="short")
    assert await administration.caller_by_token("unknown") is None
    assert await administration.caller_by_token("\x00\udcff") is None


async def test_users_are_found_by_id_and_listed(administration: Administration) -> None:
    """Both give the same; an unknown id is NotFound."""
    made = await administration.create_user(ME, "a@b.c", "finance", PASSWORD)
    assert await administration.get_user(made.id) == made
    assert (await administration.list_users()).items == [made]
    with pytest.raises(NotFound):
        await administration.get_user("user_unknown")
    with pytest.raises(NotFound):
        await administration.issue_token(ME, "x@y.z", "t")


async def test_the_last_admin_stays_one(administration: Administration) -> None:
    """Neither disabled nor given another role, by whomever; one who is disabled is no other."""
    await administration.create_user(ME, "a@b.c", "admin", PASSWORD)
    await administration.create_user(ME, "b@b.c", "admin", PASSWORD)
    await administration.update_user(ME, "b@b.c", disabled=True)
    entries = len((await administration.list_audit()).items)
    for change in (
        {"disabled": True},
        {"role": "viewer"},
        {"role": "admin", "disabled": True},
        {"role": "viewer", "disabled": False},
    ):
        with pytest.raises(Conflict, match="the last admin"):
            await administration.update_user(ME, "A@b.c", **change)
    assert (await administration.update_user(ME, "a@b.c", role="admin")).role is Role.ADMIN
    assert len((await administration.list_audit()).items) == entries
    await administration.update_user(ME, "b@b.c", role="viewer")
    await administration.update_user(ME, "b@b.c", role="admin", disabled=False)
    await administration.update_user(ME, "a@b.c", disabled=True)
    with pytest.raises(Conflict, match="the last admin"):
        await administration.update_user(ME, "b@b.c", role="finance")


async def test_two_admins_who_demote_each_other_at_once_leave_one(
    administration: Administration, database_url: str
) -> None:
    """On two replicas, round after round: exactly one of them is refused."""
    await administration.create_user(ME, "a@b.c", "admin", PASSWORD)
    await administration.create_user(ME, "b@b.c", "admin", PASSWORD)
    other_engine = async_engine(database_url)
    other = Administration(other_engine)
    try:
        for deed in ({"role": "viewer"}, {"disabled": True}) * 3:
            ended = await asyncio.gather(
                administration.update_user("user:a@b.c", "b@b.c", **deed),
                other.update_user("user:b@b.c", "a@b.c", **deed),
                return_exceptions=True,
            )
            assert sorted(type(each).__name__ for each in ended) == ["Conflict", "User"]
            users = (await administration.list_users()).items
            admins = [user for user in users if user.role is Role.ADMIN and not user.disabled]
            assert len(admins) == 1
            for user in users:
                await administration.update_user(ME, user.email, role="admin", disabled=False)
    finally:
        await other_engine.dispose()


async def test_users_are_found_by_a_part_of_their_address(administration: Administration) -> None:
    """By address in whatever case, in pages; what means something to the database is text."""
    await administration.create_tenant(ME, "acme", "Acme")
    for email in ("b_1@weir.local", "A@weir.local", "c@else.where", "bx1@weir.local"):
        await administration.create_user(ME, email, "viewer", PASSWORD)
    await administration.create_user(ME, "d@acme.test", "tenant_admin", PASSWORD, tenant_id="acme")

    async def found(**wanted: str) -> list[str]:
        return [user.email for user in (await administration.find_users(**wanted)).items]  # type: ignore[arg-type]

    everybody = ["A@weir.local", "b_1@weir.local", "bx1@weir.local", "c@else.where", "d@acme.test"]
    assert await found() == everybody
    assert await found(email="B_1") == ["b_1@weir.local"]
    assert await found(email="%") == []
    assert await found(role="tenant_admin") == ["d@acme.test"]
    assert await found(tenant_id="acme", email="ACME") == ["d@acme.test"]
    assert await found(tenant_id="acme", role="viewer") == []
    with pytest.raises(Unprocessable):
        await found(role="root")
    paged: list[str] = []
    cursor = None
    while len(paged) < len(everybody):
        page = await administration.find_users(2, cursor)
        paged += [user.email for user in page.items]
        cursor = page.next_cursor
    assert (paged, cursor) == (everybody, None)


async def test_a_token_may_do_what_its_role_may_within_its_scopes(
    administration: Administration,
) -> None:
    """As the role is now."""
    await administration.create_user(ME, "a@b.c", "operator", PASSWORD)
    whole = await administration.issue_token(ME, "a@b.c", "whole")
    scopes = [Permission.FLEET_DRAIN, Permission.FLEET_READ]
    held = await administration.issue_token(ME, "a@b.c", "held", scopes=scopes)
    caller = await administration.caller_by_token(whole)
    assert caller is not None
    assert (caller.permissions, caller.via) == (PERMISSIONS_OF[Role.OPERATOR], "token")
    caller = await administration.caller_by_token(held)
    assert caller is not None
    assert caller.permissions == frozenset(scopes)
    await administration.update_user(ME, "a@b.c", role="viewer")
    caller = await administration.caller_by_token(held)
    assert caller is not None
    assert caller.permissions == {Permission.FLEET_READ}
    (entry,) = [
        entry
        for entry in (await administration.list_audit()).items
        if entry.action == "token.issue" and (entry.after or {})["token"] == "held"
    ]
    assert (entry.after or {})["scopes"] == ["fleet.drain", "fleet.read"]


async def test_the_use_of_a_token_is_written_down_once_a_minute(engine: AsyncEngine) -> None:
    """Not each time: a program may ask a hundred times a second."""
    began_ms = time.time_ns() // 1_000_000
    at_ms = [began_ms]
    administration = Administration(engine, now_ms=lambda: at_ms[0])
    await administration.create_user(ME, "a@b.c", "viewer", PASSWORD)
    token = await administration.issue_token(ME, "a@b.c", "t")
    assert [each.last_used_at_ms for each in await administration.list_tokens("a@b.c")] == [None]
    for later_ms, used_ms in ((0, 0), (59_999, 0), (60_000, 60_000), (119_999, 60_000)):
        at_ms[0] = began_ms + later_ms
        await administration.caller_by_token(token)
        (listed,) = await administration.list_tokens("a@b.c")
        assert listed.last_used_at_ms == began_ms + used_ms
    await administration.revoke_token(ME, "a@b.c", "t")
    assert await administration.list_tokens("a@b.c") == []


async def test_who_only_reads_needs_no_store_that_writes(
    administration: Administration, engine: AsyncEngine
) -> None:
    """A standby answers who calls, though it writes down no use."""
    await administration.create_user(ME, "a@b.c", "viewer", PASSWORD)
    token = await administration.issue_token(ME, "a@b.c", "t")
    session = await administration.log_in("a@b.c", PASSWORD, address=None)
    async with engine.begin() as db:
        name = (await db.execute(text("SELECT current_database()"))).scalar_one()
        read_only = f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'
        await db.execute(text(read_only))
    await engine.dispose()
    later = Administration(engine, now_ms=lambda: time.time_ns() // 1_000_000 + 3_600_000)
    assert await later.caller_by_token(token) is not None
    assert await later.caller_by_session(session.secret) is not None
    (listed,) = await later.list_tokens("a@b.c")
    assert listed.last_used_at_ms is None

"""Sessions: begun with a password, ended by time, by hand and by what changes of their user."""

import time
from collections.abc import Awaitable, Callable

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration import Administration
from gateway.domain.account import Role, Session
from gateway.domain.permissions import PERMISSIONS_OF
from gateway.errors import NotFound, Unauthorized, Unprocessable

ME = "cli:test"
EMAIL = "Ada@weir.local"
PASSWORD = "correct horse battery"
ADDRESS = "10.1.2.3"
HOUR_MS = 3_600_000


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_ms = time.time_ns() // 1_000_000

    def __call__(self) -> int:
        """Unix milliseconds."""
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """It begins now."""
    return Clock()


@pytest.fixture
async def timed(engine: AsyncEngine, clock: Clock) -> Administration:
    """An Administration by that clock, with the viewer EMAIL."""
    made = Administration(engine, now_ms=clock)
    await made.create_user(ME, EMAIL, "viewer", PASSWORD)
    return made


async def begun(administration: Administration, password: str = PASSWORD) -> Session:
    """A session of EMAIL."""
    return await administration.log_in(EMAIL, password, address=ADDRESS)


async def test_a_session_is_its_users(timed: Administration, engine: AsyncEngine) -> None:
    """With the role's permissions; its secret is stored nowhere, its begin is audited."""
    session = await timed.log_in(EMAIL.upper(), PASSWORD, address=ADDRESS)
    caller = await timed.caller_by_session(session.secret)
    assert caller is not None
    assert (caller.user.email, caller.via) == (EMAIL, "session")
    assert caller.permissions == PERMISSIONS_OF[Role.VIEWER]
    assert await timed.caller_by_session("ws-unknown") is None
    assert await timed.caller_by_session("\x00\udcff") is None
    assert await timed.caller_by_token(session.secret) is None
    (entry, *_) = (await timed.list_audit()).items
    assert (entry.actor, entry.action) == (f"user:{EMAIL}", "session.begin")
    (listed,) = await timed.list_sessions(EMAIL)
    assert entry.after == {"session": listed.id, "address": ADDRESS}
    async with engine.connect() as db:
        stored = (await db.execute(text("SELECT s::text FROM user_session s"))).scalar_one()
    for secret in (session.secret, PASSWORD):
        assert secret not in stored + str((await timed.list_audit()).items) + repr(listed)


async def test_a_session_ends_idle_or_old(timed: Administration, clock: Clock) -> None:
    """Eight hours without use; a day, whatever its use."""
    session = await begun(timed)
    clock.now_ms += 8 * HOUR_MS - 1
    assert await timed.caller_by_session(session.secret) is not None
    clock.now_ms += 8 * HOUR_MS - 1
    assert await timed.caller_by_session(session.secret) is not None
    clock.now_ms += 8 * HOUR_MS - 1
    assert await timed.caller_by_session(session.secret) is not None
    clock.now_ms = session.expires_at_ms
    assert await timed.caller_by_session(session.secret) is None
    idle = await begun(timed)
    clock.now_ms += 8 * HOUR_MS
    assert await timed.caller_by_session(idle.secret) is None
    assert await timed.list_sessions(EMAIL) == []


async def test_use_is_written_down_once_a_minute(timed: Administration, clock: Clock) -> None:
    """A page more in the same minute writes nothing, and none is audited."""
    session = await begun(timed)
    began_ms = clock.now_ms
    entries = len((await timed.list_audit()).items)
    for later_ms, seen_ms in ((59_999, 0), (60_000, 60_000), (119_999, 60_000)):
        clock.now_ms = began_ms + later_ms
        await timed.caller_by_session(session.secret)
        (listed,) = await timed.list_sessions(EMAIL)
        assert listed.seen_at_ms == began_ms + seen_ms
    assert len((await timed.list_audit()).items) == entries


async def test_who_logs_out_ends_that_session(timed: Administration) -> None:
    """And no other; a session of another user is not to be had by their name."""
    one, other = await begun(timed), await begun(timed)
    await timed.log_out(one.secret)
    assert await timed.caller_by_session(one.secret) is None
    assert await timed.caller_by_session(other.secret) is not None
    await timed.create_user(ME, "b@weir.local", "viewer", PASSWORD)
    (listed,) = await timed.list_sessions(EMAIL)
    with pytest.raises(NotFound):
        await timed.end_session(ME, "b@weir.local", listed.id)
    await timed.end_session(ME, EMAIL, listed.id)
    assert await timed.caller_by_session(other.secret) is None
    with pytest.raises(NotFound):
        await timed.end_session(ME, EMAIL, listed.id)
    (entry, *_) = (await timed.list_audit()).items
    assert (entry.actor, entry.action, entry.before) == (ME, "session.end", {"session": listed.id})


async def test_all_sessions_end_but_the_one_that_is_kept(timed: Administration) -> None:
    """It is known by its secret, and listed by an id; another's secret keeps nothing."""
    own, *others = [await begun(timed) for _ in range(3)]
    listed = {session.id for session in await timed.list_sessions(EMAIL)}
    assert await timed.log_out_everywhere(ME, EMAIL, keep=own.secret) == 2
    (left,) = await timed.list_sessions(EMAIL)
    assert await timed.session_id(own.secret) == left.id in listed
    assert await timed.session_id("ws-unknown") is None
    assert [await timed.caller_by_session(each.secret) for each in others] == [None, None]
    (entry, *_) = (await timed.list_audit()).items
    assert (entry.action, entry.before) == ("session.end_all", {"sessions": 2})
    assert await timed.log_out_everywhere(ME, EMAIL, keep="ws-unknown") == 1
    assert await timed.list_sessions(EMAIL) == []


async def _elsewhere(administration: Administration) -> object:
    return await administration.log_out_everywhere(ME, EMAIL)


async def _disabled(administration: Administration) -> object:
    return await administration.update_user(ME, EMAIL, disabled=True)


async def _promoted(administration: Administration) -> object:
    return await administration.update_user(ME, EMAIL, role="operator")


async def _of_a_tenant(administration: Administration) -> object:
    await administration.create_tenant(ME, "acme", "Acme")
    return await administration.update_user(ME, EMAIL, role="tenant_admin", tenant_id="acme")


async def _reset(administration: Administration) -> object:
    return await administration.set_password(ME, EMAIL, "another long password")


async def _changed(administration: Administration) -> object:
    return await administration.change_password(ME, EMAIL, PASSWORD, "another long password")


@pytest.mark.parametrize("deed", [_elsewhere, _disabled, _promoted, _of_a_tenant, _reset, _changed])
async def test_what_ends_all_sessions(
    timed: Administration, deed: Callable[[Administration], Awaitable[object]]
) -> None:
    """Each of a user's, and none of another's."""
    await timed.create_user(ME, "b@weir.local", "viewer", PASSWORD)
    bystander = await timed.log_in("b@weir.local", PASSWORD, address=None)
    sessions = [await begun(timed), await begun(timed)]
    await deed(timed)
    for session in sessions:
        assert await timed.caller_by_session(session.secret) is None
    await timed.update_user(ME, EMAIL, disabled=False)
    for session in sessions:
        assert await timed.caller_by_session(session.secret) is None
    assert await timed.caller_by_session(bystander.secret) is not None


async def test_what_changes_nothing_ends_nothing(timed: Administration) -> None:
    """The same role again, or enabled again."""
    session = await begun(timed)
    await timed.update_user(ME, EMAIL, role="viewer", disabled=False)
    assert await timed.caller_by_session(session.secret) is not None


async def test_a_password_is_changed_by_who_knows_it(timed: Administration) -> None:
    """Or reset; the audit log says that, and neither password."""
    other = "another long password"
    with pytest.raises(Unprocessable) as refused:
        await timed.change_password(ME, EMAIL, "a wrong password", other)
    assert refused.value.param == "current_password"
    with pytest.raises(Unprocessable) as refused:
        await timed.change_password(ME, EMAIL, PASSWORD, "short")
    assert refused.value.param == "password"
    await begun(timed)
    await timed.change_password(ME, EMAIL, PASSWORD, other)
    with pytest.raises(Unauthorized):
        await begun(timed)
    await begun(timed, other)
    await timed.set_password(ME, EMAIL, PASSWORD)
    await begun(timed)
    entries = (await timed.list_audit()).items
    changes = [entry.after for entry in entries if entry.action == "user.password"]
    assert changes == [{"sessions_ended": 1}, {"sessions_ended": 1}]
    assert not any(word in str(entries) for word in (PASSWORD, other, "a wrong password", "argon2"))


@pytest.mark.usefixtures("full_cost_passwords")
async def test_a_hash_of_other_parameters_is_renewed(
    timed: Administration, engine: AsyncEngine
) -> None:
    """Where its password is right; the password goes on, and so does who logs in at once."""
    old = PasswordHasher(time_cost=1, memory_cost=8192).hash(PASSWORD)
    async with engine.begin() as db:
        await db.execute(text("UPDATE app_user SET password_hash = :old"), {"old": old})
    with pytest.raises(Unauthorized):
        await begun(timed, "a wrong password")
    for _ in range(2):
        await begun(timed)
        async with engine.connect() as db:
            stored = (await db.execute(text("SELECT password_hash FROM app_user"))).scalar_one()
        assert stored != old
        assert not PasswordHasher().check_needs_rehash(stored)


async def test_old_sessions_are_forgotten(
    timed: Administration, engine: AsyncEngine, clock: Clock
) -> None:
    """A month after they ended, when their user comes again."""
    await begun(timed)
    clock.now_ms += 30 * 24 * HOUR_MS
    await begun(timed)
    clock.now_ms += 25 * HOUR_MS
    await begun(timed)
    async with engine.connect() as db:
        left = (await db.execute(text("SELECT count(*) FROM user_session"))).scalar_one()
    assert left == 2

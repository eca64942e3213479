"""Wrong passwords: counted one by one, whoever counts, and the tenth in a row locks."""

import asyncio
import logging
import time
from collections.abc import Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration, logins, passwords
from gateway.domain.account import Session
from gateway.errors import Unauthorized, Unprocessable

ME = "cli:test"
EMAIL = "ada@weir.local"
PASSWORD = "correct horse battery"
WRONG = "wrong horse battery"
QUARTER_MS = 15 * 60_000


async def tried(administration: Administration, password: str, email: str = EMAIL) -> str | None:
    """What a log-in is refused with; None where it is not."""
    try:
        await administration.log_in(email, password, address=None)
    except Unauthorized as error:
        return error.message
    return None


async def tries(administration: Administration, passwords_tried: Sequence[str]) -> list[bool]:
    """Which of them, one after the other, are let in."""
    return [await tried(administration, password) is None for password in passwords_tried]


async def counted(engine: AsyncEngine) -> tuple[int, bool]:
    """The wrong passwords in a row, and whether they lock."""
    query = text("SELECT failed_logins, locked_until IS NOT NULL FROM app_user")
    async with engine.connect() as db:
        failed, locked = (await db.execute(query)).one()
    return failed, locked


async def locks(administration: Administration) -> list[object]:
    """What the audit log says of locks."""
    entries = (await administration.list_audit()).items
    return [entry.after for entry in entries if entry.action == "user.lock"]


@pytest.mark.usefixtures("full_cost_passwords")
async def test_forty_at_once_on_two_replicas_end_at_the_exact_lock(
    administration: Administration, engine: AsyncEngine, database_url: str
) -> None:
    """Ten are counted and none more; there is one lock, and one entry of it."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    another = async_engine(database_url)
    replicas = [administration, Administration(another)]
    try:
        refused = await asyncio.gather(*(tried(replicas[n % 2], WRONG) for n in range(40)))
    finally:
        await another.dispose()
    assert None not in refused
    assert await counted(engine) == (10, True)
    (lock,) = await locks(administration)
    assert isinstance(lock, dict)
    assert lock["failed_logins"] == 10
    assert await tried(administration, PASSWORD) is not None


@pytest.mark.usefixtures("full_cost_passwords")
async def test_nine_at_once_lock_nothing(
    administration: Administration, engine: AsyncEngine
) -> None:
    """And a right one makes them forgotten."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    await asyncio.gather(*(tried(administration, WRONG) for _ in range(9)))
    assert await counted(engine) == (9, False)
    assert await tried(administration, PASSWORD) is None
    assert await counted(engine) == (0, False)
    assert await locks(administration) == []


async def test_the_tenth_locks_for_a_quarter_of_an_hour(engine: AsyncEngine) -> None:
    """The right password is refused in the same words; then it is taken, and counting begins at
    one."""
    now_ms = time.time_ns() // 1_000_000
    administration = Administration(engine, now_ms=lambda: now_ms)
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    assert not any(await tries(administration, [WRONG] * 10))
    assert await locks(administration) == [
        {"failed_logins": 10, "locked_until_ms": now_ms + QUARTER_MS}
    ]
    wrong = await tried(administration, WRONG)
    assert await tried(administration, PASSWORD) == wrong is not None
    assert await counted(engine) == (10, True)
    later = Administration(engine, now_ms=lambda: now_ms + QUARTER_MS - 1)
    assert await tried(later, PASSWORD) == wrong
    after = Administration(engine, now_ms=lambda: now_ms + QUARTER_MS)
    assert await tries(after, [*[WRONG] * 9, PASSWORD]) == [*[False] * 9, True]


async def test_a_reset_unlocks(administration: Administration) -> None:
    """Whoever resets it knows who asks."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    await tries(administration, [WRONG] * 10)
    await administration.set_password(ME, EMAIL, PASSWORD)
    assert await tried(administration, PASSWORD) is None


async def test_a_wrong_current_password_counts(administration: Administration) -> None:
    """Whoever has got hold of a session cannot try passwords with it for long."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    for _ in range(10):
        with pytest.raises(Unprocessable):
            await administration.change_password(ME, EMAIL, WRONG, PASSWORD)
    with pytest.raises(Unprocessable):
        await administration.change_password(ME, EMAIL, PASSWORD, PASSWORD)
    assert len(await locks(administration)) == 1


async def test_who_confirms_a_password_knows_it(administration: Administration) -> None:
    """A wrong one counts, and while it is locked the right one confirms nothing."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    await administration.confirm_password(EMAIL, PASSWORD)
    for password in (*[WRONG] * 10, PASSWORD):
        with pytest.raises(Unprocessable) as refused:
            await administration.confirm_password(EMAIL, password)
        assert refused.value.param == "current_password"
    assert len(await locks(administration)) == 1
    await administration.set_password(ME, EMAIL, PASSWORD)
    await administration.update_user(ME, EMAIL, disabled=True)
    with pytest.raises(Unprocessable):
        await administration.confirm_password(EMAIL, PASSWORD)


@pytest.mark.parametrize("meanwhile", ["locked", "disabled", "reset"])
async def test_a_lock_that_comes_while_a_password_is_hashed_holds(
    administration: Administration, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Many at once are all hashed before the tenth is counted: the right one among them confirms
    nothing. The same where the account is disabled or has another password by then."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    real = passwords.check_against

    async def late(stored: str | None, given: str) -> passwords.Verdict:
        verdict = await real(stored, given)
        monkeypatch.setattr(logins, "check_against", real)
        if meanwhile == "locked":
            await tries(administration, [WRONG] * 10)
        elif meanwhile == "disabled":
            await administration.update_user(ME, EMAIL, disabled=True)
        else:
            await administration.set_password(ME, EMAIL, "another long password")
        return verdict

    monkeypatch.setattr(logins, "check_against", late)
    with pytest.raises(Unprocessable) as refused:
        await administration.confirm_password(EMAIL, PASSWORD)
    assert refused.value.param == "current_password"


@pytest.mark.parametrize("barred", ["locked", "disabled"])
async def test_a_right_password_of_who_is_barred_costs_what_a_wrong_one_costs(
    administration: Administration, monkeypatch: pytest.MonkeyPatch, barred: str
) -> None:
    """No session is begun for it, which would wait for the directory's lock: how long the answer
    takes would say that the password was guessed."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    if barred == "locked":
        await tries(administration, [WRONG] * 10)
    else:
        await administration.update_user(ME, EMAIL, disabled=True)
    begun: list[object] = []

    async def begin(*arguments: object) -> None:
        begun.append(arguments)

    monkeypatch.setattr(administration, "_begin", begin)
    assert await tried(administration, PASSWORD) == await tried(administration, WRONG) is not None
    assert begun == []


@pytest.mark.usefixtures("full_cost_passwords")
async def test_nobody_learns_which_was_wrong(
    administration: Administration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are the same, and a password is checked each time, also of nobody."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    await administration.create_user(ME, "gone@weir.local", "viewer", PASSWORD)
    await administration.update_user(ME, "gone@weir.local", disabled=True)
    checked: list[str] = []
    real = passwords._verdict

    def counting(password_hash: str, password: str) -> passwords.Verdict:
        checked.append(password_hash)
        return real(password_hash, password)

    monkeypatch.setattr(passwords, "_verdict", counting)
    attempts = [
        (EMAIL, WRONG),
        ("gone@weir.local", PASSWORD),
        ("nobody@weir.local", PASSWORD),
        ("no address\x00", PASSWORD),
        (EMAIL, PASSWORD + "x" * 2000),
    ]
    said = {await tried(administration, password, email) for email, password in attempts}
    assert len(said) == 1
    assert None not in said
    assert len(checked) == len(attempts)
    parameters = {each.rpartition("$")[0].rpartition("$")[0] for each in checked}
    assert len(parameters) == 1


async def test_a_user_who_is_disabled_meanwhile_stays_out(
    administration: Administration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the password was right when it was checked; the same of a password reset."""
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    real = administration._begin

    async def disabled_first(*arguments: object) -> Session | None:
        await administration.update_user(ME, EMAIL, disabled=True)
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(administration, "_begin", disabled_first)
    assert await tried(administration, PASSWORD) is not None
    await administration.update_user(ME, EMAIL, disabled=False)

    async def reset_first(*arguments: object) -> Session | None:
        await administration.set_password(ME, EMAIL, "another long password")
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(administration, "_begin", reset_first)
    assert await tried(administration, PASSWORD) is not None
    assert await administration.list_sessions(EMAIL) == []


async def test_secrets_are_in_no_log_and_no_error(
    administration: Administration, caplog: pytest.LogCaptureFixture
) -> None:
    """At the most talkative level, of what is taken and of what is refused."""
    caplog.set_level(logging.DEBUG)
    await administration.create_user(ME, EMAIL, "viewer", PASSWORD)
    token = await administration.issue_token(ME, EMAIL, "t")
    session = await administration.log_in(EMAIL, PASSWORD, address=None)
    await administration.caller_by_token(token)
    await administration.caller_by_session(session.secret)
    refused = await tried(administration, WRONG) or ""
    with pytest.raises(Unprocessable) as error:
        await administration.change_password(ME, EMAIL, WRONG, "another long password")
    told = caplog.text + refused + str(error.value) + str((await administration.list_audit()).items)
    for secret in (PASSWORD, WRONG, "another long password", token, session.secret, "argon2id"):
        assert secret not in told

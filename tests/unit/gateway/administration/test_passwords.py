"""Work on passwords: how much of it at once, and what it says."""

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from gateway.administration import passwords
from gateway.administration.passwords import (
    NOBODYS_HASH,
    Hashing,
    check_against,
    hash_password,
)
from gateway.errors import Overloaded

PASSWORD = "correct horse battery"


class Gate:
    """Work that goes on for as long as the gate is shut, and counts who is at it."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def work(self) -> str:
        """Wait for the gate."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        assert self.opened.wait(30)
        with self._lock:
            self._now -= 1
        return "done"


async def test_two_at_once_some_wait_and_the_rest_is_refused() -> None:
    """And there is room again when they are done."""
    hashing, gate = Hashing(at_once=2, waiting_max=3), Gate()
    taken = [asyncio.create_task(hashing.run(gate.work)) for _ in range(5)]
    await asyncio.sleep(0)
    for _ in range(2):
        with pytest.raises(Overloaded):
            await hashing.run(gate.work)
    gate.opened.set()
    assert await asyncio.gather(*taken) == ["done"] * 5
    assert gate.most <= 2
    assert await hashing.run(gate.work) == "done"


async def test_who_goes_away_leaves_their_place() -> None:
    """Nobody waits behind those who have closed the connection."""
    hashing, gate = Hashing(at_once=1, waiting_max=1), Gate()
    running = asyncio.create_task(hashing.run(gate.work))
    gone = asyncio.create_task(hashing.run(gate.work))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    next_one = asyncio.create_task(hashing.run(gate.work))
    await asyncio.sleep(0)
    gate.opened.set()
    assert [await running, await next_one] == ["done", "done"]


async def test_every_password_waits_in_the_process_own_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it is checked, of somebody or of nobody, or hashed."""
    hashing, gate = Hashing(at_once=1, waiting_max=0), Gate()
    monkeypatch.setattr(passwords, "_hashing", hashing)
    running = asyncio.create_task(hashing.run(gate.work))
    await asyncio.sleep(0)
    for asked in (hash_password(PASSWORD), check_against(None, PASSWORD)):
        with pytest.raises(Overloaded):
            await asked
    gate.opened.set()
    assert await running == "done"
    assert not (await check_against(None, PASSWORD)).right


async def test_the_process_own_queue_is_bounded() -> None:
    """The sixty-seventh is refused, while sixty-six are done or wait."""
    gate = Gate()
    hashing = passwords._hashing
    taken = [asyncio.create_task(hashing.run(gate.work)) for _ in range(66)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await asyncio.wait_for(hash_password(PASSWORD), 10)
    gate.opened.set()
    assert await asyncio.gather(*taken) == ["done"] * 66
    assert gate.most <= 2


async def test_work_that_fails_leaves_its_place_too() -> None:
    """The failure is the caller's."""
    hashing = Hashing(at_once=1, waiting_max=0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await hashing.run(lambda: 1 // 0)


async def test_a_right_password_is_right() -> None:
    """And no other, longer or shorter; surrogates are text as any other."""
    for password in (PASSWORD, "ünïcødé påsswörd", "\udcff" * 12, "x" * 1024):
        stored = await hash_password(password)
        assert await check_against(stored, password) == passwords.Verdict(right=True)
        for other in (password + "x", password[:-1], ""):
            assert not (await check_against(stored, other)).right


async def test_nobody_has_nobodys_password() -> None:
    """It is checked with the parameters of everybody's, so it takes as long."""
    assert not (await check_against(None, PASSWORD)).right
    assert not (await check_against("no hash", PASSWORD)).right
    assert not PasswordHasher().check_needs_rehash(NOBODYS_HASH)


async def test_old_parameters_are_renewed_where_the_password_is_right() -> None:
    """With what verifies it again."""
    old = PasswordHasher(time_cost=1, memory_cost=8192).hash(PASSWORD)
    verdict = await check_against(old, PASSWORD)
    assert verdict.right
    assert verdict.new_hash is not None
    assert await check_against(verdict.new_hash, PASSWORD) == passwords.Verdict(right=True)
    assert (await check_against(old, "a wrong password")).new_hash is None

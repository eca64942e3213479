"""A second copy, in Redis, of what a gateway's journal holds and Postgres lacks: losing the disk of
one gateway loses nothing.

One hash a gateway, `weir:{unshipped:<gateway>}`: a field for each request, by its id, with its
admission (`A`) or, in its place, its end (`E`). Written beside the journal's fsync, all of one turn
of the event loop in one call; taken out once Postgres has it.

The copy never decides, raises or holds up anything: it is waited for `WAIT_MS` at most, and not at
all while the store does not answer. What it missed is written again from the journal
(`second_copy_repair`). A store that came back empty or old is noticed by the number of the last
write, which lies in the hash too.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Protocol, cast
from uuid import UUID

from redis.exceptions import RedisError

from gateway.telemetry.log_context import outside_requests

WAIT_MS = 50
"""A copy that takes longer is not waited for, nor any after it until one is answered."""
WRITE_AT_ONCE = 200
"""Copies in one call: the server does nothing else meanwhile."""
TAKE_OUT_AT_ONCE = 500
ENTRIES_MAX = 100_000
WRITES = b"@"
"""The field that counts writes; all others are requests."""
_ROOM_AGAIN = 0.9
"""Full is over below this share of the most, so that it does not flutter."""
_WRITE = (files("gateway.adapters") / "lua" / "second_copy.lua").read_text()
logger = logging.getLogger(__name__)


def copies_key(gateway_id: str) -> str:
    """Where a gateway's copies are."""
    return f"weir:{{unshipped:{gateway_id}}}"


class Script(Protocol):
    """A script of the store."""

    def __call__(
        self, keys: Sequence[str], args: Sequence[str | int | bytes]
    ) -> Awaitable[Any]: ...


class Store(Protocol):
    """What is asked of a Redis client: scripts on one key."""

    def register_script(self, source: str) -> Script: ...


class Told:
    """Copies that travel together. `done` is done when they are no longer waited for; `failed` says
    that they may not have arrived."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed = False

    def end(self) -> None:
        """Nobody waits any longer."""
        if not self.done.done():
            self.done.set_result(None)


class SecondCopy:
    """One gateway's copies, as that gateway writes them. On the event loop only."""

    def __init__(
        self,
        store: Store,
        gateway_id: str,
        *,
        entries_max: int = ENTRIES_MAX,
        wait_ms: int = WAIT_MS,
    ) -> None:
        self._script = store.register_script(_WRITE)
        self._key = copies_key(gateway_id)
        self._entries_max = entries_max
        self._wait_s = wait_ms / 1000
        self._sets: dict[str, bytes] = {}
        self._outs: dict[str, None] = {}
        self._told: Told | None = None
        self._flushed: asyncio.Future[bool] | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._number = time.time_ns() // 1000  # above those of earlier lives
        self._heard = 0
        self._patient = True
        self._taken_out_meanwhile: set[str] | None = None
        self._is_away = False
        self._behind_since: float | None = time.monotonic()
        self.gaps = 1
        """Rises whenever something may be missing in the store; at the start, what an earlier life
        did not copy."""
        self.entries = 0
        """Copies in the store, as it last said."""
        self.is_full = False
        """Whether ends are not copied for want of room."""
        self.uncopied = 0
        """Copies that did not arrive, or found no room, since the start."""

    @property
    def is_away(self) -> bool:
        """Whether the store did not answer: nothing is sent until `reopen` has found it."""
        return self._is_away

    @property
    def is_behind(self) -> bool:
        """Whether something may be missing in the store."""
        return self._behind_since is not None

    def behind_for_s(self) -> float:
        """For how long it has been so; 0 where it is not."""
        return 0.0 if self._behind_since is None else time.monotonic() - self._behind_since

    def add(self, request_id: UUID, value: bytes) -> Told | None:
        """Copy an admission or an end, as `second_copy_records` encodes them. Returns what to wait
        for; None where nothing is sent now."""
        name = request_id.hex
        if self._is_away or (self._taken_out_meanwhile and name in self._taken_out_meanwhile):
            return None
        if value[:1] == b"E":
            self._sets[name] = value
        else:
            self._sets.setdefault(name, value)
        if self._told is None:
            self._told = self._new_told()
        self._wake()
        return self._told

    def take_out(self, request_ids: Iterable[UUID]) -> None:
        """Postgres has these, or they never were. Sent with the next copies, or by `flush`."""
        for request_id in request_ids:
            name = request_id.hex
            self._sets.pop(name, None)
            self._outs[name] = None
            if self._taken_out_meanwhile is not None:
                self._taken_out_meanwhile.add(name)
        if len(self._outs) > self._entries_max:
            self._outs.clear()  # the store is away for long; `second_copy_repair` finds them
        elif len(self._outs) >= TAKE_OUT_AT_ONCE and not self._is_away:
            self._wake()

    async def flush(self) -> bool:
        """Send what waits now; where that is nothing, a write all the same, which tells whether the
        store still has what it had. Whether it was taken."""
        if self._is_away:
            return False
        if self._flushed is None:
            self._flushed = asyncio.get_running_loop().create_future()
        self._wake()
        return await asyncio.shield(self._flushed)

    async def reopen(self) -> bool:
        """Ask a store that was away; from the answer on copies are sent again."""
        if self._is_away and await self._write([], []):
            self._is_away = False
        return not self._is_away

    @contextlib.contextmanager
    def repairing(self) -> Iterator[None]:
        """Meanwhile, what is taken out is not copied again by one who read it before."""
        self._taken_out_meanwhile = set()
        try:
            yield
        finally:
            self._taken_out_meanwhile = None

    def repaired(self, gaps: int) -> None:
        """All that was missing when `gaps` was read is there."""
        if gaps == self.gaps:
            self._behind_since = None

    def _new_told(self) -> Told:
        told = Told()
        if self._patient:
            asyncio.get_running_loop().call_later(self._wait_s, self._lose_patience, told)
        else:
            told.end()
        return told

    def _lose_patience(self, told: Told) -> None:
        if not told.done.done():
            self._patient = False
            told.end()

    def _wake(self) -> None:
        if self._flusher is None:
            loop = asyncio.get_running_loop()
            self._flusher = loop.create_task(self._flush(), context=outside_requests())

    async def _flush(self) -> None:
        """Send until nothing waits: what comes while a write is under way goes with the next."""
        try:
            while (self._sets or self._outs or self._flushed) and not self._is_away:
                sets, self._sets = self._sets, {}
                outs, self._outs = self._outs, {}
                told, self._told = self._told, None
                flushed, self._flushed = self._flushed, None
                sent = await self._write_all(sets, outs)
                if not sent:
                    self._outs = outs | self._outs
                _end(told, flushed, sent=sent)
        finally:
            self._flusher = None

    async def _write_all(self, sets: dict[str, bytes], outs: dict[str, None]) -> bool:
        pairs, names = list(sets.items()), list(outs)
        while True:
            if not await self._write(pairs[:WRITE_AT_ONCE], names[:TAKE_OUT_AT_ONCE]):
                self.uncopied += len(pairs)
                return False
            pairs, names = pairs[WRITE_AT_ONCE:], names[TAKE_OUT_AT_ONCE:]
            if not (pairs or names):
                return True

    async def _write(self, pairs: Sequence[tuple[str, bytes]], out: Sequence[str]) -> bool:
        self._number += 1
        number, heard = self._number, self._heard
        arguments: list[str | int | bytes] = [number, self._entries_max, len(out), *out]
        for pair in pairs:
            arguments.extend(pair)
        try:
            reply = await self._script([self._key], arguments)
            before, entries, refused = cast("tuple[bytes, int, int]", reply)
            was = int(before)
        except (RedisError, OSError, TimeoutError) as error:
            self._fail(type(error).__name__)
            return False
        except Exception:  # a bug in the copy must not end what it is a copy of
            logger.exception("second copy: unexpected failure")
            self._fail("unexpected failure")
            return False
        self._heard, self._patient = max(number, heard), True
        if was < heard:
            logger.warning("second copy: the store has lost copies; they are written again")
            self._miss()
        self._count(entries, refused)
        return True

    def _count(self, entries: int, refused: int) -> None:
        self.entries = entries
        self.uncopied += refused
        if refused and not self.is_full:
            logger.error("second copy: no room for more than %d", entries)
            self.is_full = True
        elif self.is_full and entries < _ROOM_AGAIN * self._entries_max:
            self.is_full = False
            self._miss()
        if refused:
            self._miss()

    def _fail(self, why: str) -> None:
        if not self._is_away:
            logger.warning("second copy: the store does not answer (%s)", why)
        self._is_away = True
        self._miss()
        self.uncopied += len(self._sets)
        self._sets.clear()
        told, self._told = self._told, None
        flushed, self._flushed = self._flushed, None
        _end(told, flushed, sent=False)

    def _miss(self) -> None:
        self.gaps += 1
        if self._behind_since is None:
            self._behind_since = time.monotonic()


def _end(told: Told | None, flushed: asyncio.Future[bool] | None, *, sent: bool) -> None:
    if told is not None:
        told.failed = not sent
        told.end()
    if flushed is not None and not flushed.done():
        flushed.set_result(sent)

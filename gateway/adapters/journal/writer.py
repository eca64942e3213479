"""The thread that commits what waits, so that no fsync ever stops the event loop."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.adapters.journal.batch import Append, Durable, Fate
from gateway.adapters.journal.committer import Committer

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Waiting:
    """An entry and who waits for it."""

    append: Append
    done: asyncio.Future[Fate]


class Writer:
    """Takes all that waits at once and answers on the event loop.

    With nothing to write it looks once in each heal interval whether its file is still there.

    An end that the file does not take stays in `spare`, its future open, until the file is healed
    or `release` says that Postgres has it.
    """

    def __init__(
        self,
        committer: Committer,
        loop: asyncio.AbstractEventLoop,
        *,
        heal_interval_ms: int,
        on_commit: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._committer = committer
        self._loop = loop
        self._heal_interval_s = heal_interval_ms / 1000
        self._on_commit = on_commit
        self._now_ms = now_ms
        self._changed = threading.Condition()
        self._queue: list[Waiting] = []
        self._submitted: list[Waiting] = []
        self._closed = False
        self._forgotten: list[UUID] = []
        self._spare: dict[UUID, Waiting] = {}
        self._stopping = False
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)

    def start(self) -> None:
        """Begin to take entries."""
        self._thread.start()

    @property
    def failing(self) -> bool:
        """Whether admissions are refused."""
        return self._broken or self._committer.failing

    @property
    def durable(self) -> Durable:
        """How far the journal is on the disk."""
        return self._committer.durable

    @property
    def boot(self) -> int:
        """The boot that entries are numbered in; a healed journal has a new one."""
        return self._committer.durable.key.boot

    def submit(self, append: Append) -> asyncio.Future[Fate]:
        """Queue one entry. The future resolves to DURABLE or REFUSED, and to SPARE only where
        the journal closes before that end is written anywhere. On the event loop only."""
        if self._closed:
            raise RuntimeError("the journal is closed")
        done: asyncio.Future[Fate] = self._loop.create_future()
        if not self._submitted:
            # Once for all that this turn of the loop submits: the thread that is woken wants the
            # interpreter that the loop still has.
            self._loop.call_soon(self._hand_over)
        self._submitted.append(Waiting(append, done))
        return done

    def close(self) -> None:
        """Take nothing more. On the event loop only; `stop` then ends the thread."""
        self._closed = True
        self._hand_over()

    def _hand_over(self) -> None:
        if self._submitted:
            with self._changed:
                self._queue += self._submitted
                self._changed.notify()
            self._submitted = []

    def spare(self) -> list[Append]:
        """Ends that are in memory only."""
        with self._changed:
            return [waiting.append for waiting in self._spare.values()]

    def release(self, request_ids: Sequence[UUID]) -> None:
        """Postgres has these ends: whoever waits for them may go on. On the event loop only."""
        with self._changed:
            released = [
                self._spare.pop(request_id)
                for request_id in request_ids
                if request_id in self._spare
            ]
            self._forgotten.extend(waiting.append.request_id for waiting in released)
            self._changed.notify()
        self._answer([(waiting.done, Fate.DURABLE) for waiting in released])

    def stop(self) -> None:
        """After `close`: commit what waits, seal the file and end the thread; blocks. What is still
        spare then is lost with the process, and logged."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        heal_at = 0.0
        while True:
            batch, forgotten, stopping = self._take(heal_at)
            try:
                if forgotten:
                    self._committer.forget(forgotten)
                if not batch:
                    self._committer.check()
                else:
                    self._settle(batch, self._committer.commit([each.append for each in batch]))
                if self._committer.failing and (stopping or time.monotonic() >= heal_at):
                    self._heal()
                    heal_at = time.monotonic() + self._heal_interval_s
            except Exception:  # a bug here must refuse admissions, not hang them
                logger.critical("journal: the writer failed, admissions are refused", exc_info=True)
                self._broken = True
                self._settle(batch, [_unwritten(each.append) for each in batch])
            if stopping:
                break
        self._committer.seal()
        self._give_up_spare()

    def _take(self, heal_at: float) -> tuple[list[Waiting], list[UUID], bool]:
        with self._changed:
            while not (self._queue or self._forgotten or self._stopping):
                patience = self._heal_interval_s
                if self._committer.failing:
                    patience = heal_at - time.monotonic()
                if patience <= 0 or not self._changed.wait(patience):
                    break
            batch, self._queue = self._queue, []
            forgotten, self._forgotten = self._forgotten, []
            return batch, forgotten, self._stopping

    def _settle(self, batch: Sequence[Waiting], fates: Sequence[Fate]) -> None:
        answers = list(zip([waiting.done for waiting in batch], fates, strict=True))
        if Fate.SPARE in fates:
            with self._changed:
                for waiting, fate in zip(batch, fates, strict=True):
                    if fate is Fate.SPARE:
                        self._spare[waiting.append.request_id] = waiting
            answers = [(done, fate) for done, fate in answers if fate is not Fate.SPARE]
        self._announce(answers)

    def _heal(self) -> None:
        with self._changed:
            spare = list(self._spare.values()) if self._committer.poisoned else []
        healed = self._committer.heal([each.append for each in spare], now_ms=self._now_ms())
        if not healed:
            return
        with self._changed:
            for waiting in spare:
                self._spare.pop(waiting.append.request_id, None)
        self._announce([(waiting.done, Fate.DURABLE) for waiting in spare])

    def _give_up_spare(self) -> None:
        with self._changed:
            left = list(self._spare.values())
            self._spare.clear()
        if left:
            logger.critical("journal: closed with %d ends in memory only", len(left))
            self._announce([(waiting.done, Fate.SPARE) for waiting in left])

    def _announce(self, answers: list[tuple[asyncio.Future[Fate], Fate]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._answer, answers)
        except RuntimeError:
            logger.warning("journal: the event loop ended before %d answers", len(answers))

    def _answer(self, answers: list[tuple[asyncio.Future[Fate], Fate]]) -> None:
        for done, fate in answers:
            if not done.done():  # its waiter may have been cancelled; the entry is written anyway
                done.set_result(fate)
        self._on_commit()


def _unwritten(append: Append) -> Fate:
    return Fate.SPARE if append.admitted is None else Fate.REFUSED

"""A place as the straight line holds it."""

import asyncio
from collections.abc import Callable

from gateway.domain.queue.tickets import Band
from gateway.serving.queue.entry import Entry, State
from gateway.serving.queue.keeping import Keeper
from gateway.serving.queue.waiting import Waiting
from gateway.telemetry import queue as metrics
from gateway.telemetry.trace_names import PLACE


class HeldPlace:
    """Room on a worker. It ends exactly once, by `end` or `unused`; both are harmless after that,
    and also after `wait_again` raised.

    Batch may be asked to give it back until its first token: `on_taken_back`, then `surrender` and
    an abort upstream, then `wait_again`. Whichever of `began` and `surrender` is called first wins.
    """

    def __init__(self, entry: Entry, waiting: Waiting, keeper: Keeper) -> None:
        self.entry = entry
        self._waiting = waiting
        self._keeper = keeper

    @property
    def worker(self) -> str | None:
        """Where it is. None where the store was away: route as you like, and say `runs_on`."""
        return self.entry.worker

    @property
    def band(self) -> Band:
        """Of its request."""
        return self.entry.asked.band

    @property
    def queue_ms(self) -> int:
        """How long was waited for it, in all."""
        return self.entry.waited_us // 1000

    @property
    def taken_back(self) -> asyncio.Event:
        """Set while an interactive request waits for it, and no token has come."""
        return self.entry.taken_back

    @property
    def surrendered(self) -> bool:
        """Whether it has been decided to give it back."""
        return self.entry.surrendered

    def on_taken_back(self, callback: Callable[[], None]) -> None:
        """Call back once when it is asked back; at once if it was. Counts until `wait_again`."""
        self.entry.on_taken_back.append(callback)
        if self.entry.taken_back.is_set():
            callback()

    def surrender(self) -> bool:
        """Decide to give it back: True where it was asked back and no token had come. From then on
        nothing of its stream may reach the client."""
        entry = self.entry
        if entry.state is State.HELD and entry.taken_back.is_set() and not entry.began:
            entry.surrendered = True
        return entry.surrendered

    def began(self) -> bool:
        """The first content token came. False where the place had been surrendered: drop it."""
        entry = self.entry
        if entry.surrendered or entry.state is not State.HELD:
            return False
        if not entry.began:
            entry.began = True
            if entry.taken_back.is_set():
                entry.taken_back.clear()
                metrics.TAKEN_BACK.labels(result="kept").inc()
            if self._keeper.may_be_taken_back(entry):
                entry.untold = True
                self._keeper.tell_began(entry)
        return True

    def runs_on(self, worker: str) -> None:
        """It is sent to this worker, whatever worker its place was on. Harmless twice."""
        if worker != self.entry.worker and self.entry.state is State.HELD:
            self._waiting.keep(self._keeper.move(self.entry, worker))

    async def wait_again(self) -> None:
        """After `surrender`, and once its stream has ended: give the place back and wait for
        another, unbilled. Raises what `Places.place` does; then it has ended."""
        try:
            await self.entry.traced(PLACE, self._waiting.give_back(self.entry))
        except BaseException:
            self._waiting.depart(self.entry, None)
            raise

    async def end(self, actual_cost: int) -> None:
        """It ran, at this cost in weighted tokens. Returns when the store knows, or does not
        answer; also where this is cancelled the store is told. Does not raise."""
        self.release(actual_cost)
        await self._released()

    async def unused(self) -> None:
        """It never ran."""
        self.release(None)
        await self._released()

    def release(self, actual_cost: int | None) -> None:
        """As `end` or, without a cost, `unused`; the store is told soon, and nobody waits for
        that."""
        self._waiting.depart(self.entry, actual_cost)

    async def _released(self) -> None:
        if self.entry.departure is not None:
            await asyncio.shield(self.entry.departure)

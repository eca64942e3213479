"""Whether the store of leases answers: what decides at once, and what waits, while it does not.

```
         a call fails, or is not answered            the ping fails too, and
         for half the time-out                       nothing else was answered
  OPEN ──────────────────────────────────► SUSPECT ─────────────────────────► AWAY
   ▲   ◄──────── anything is answered ────────┘                                │
   └─────────── told what it must know ───── RETURNING ◄── a ping each 100 ms ─┘
```

One late reply is only a doubt: the ping that it causes ends it. Where this process itself was held
up, so that the time ran out before a reply could be read, the ping is sent again. Nothing is sent
to a store that is away but pings, so decisions are instant then; only in the first half second a
request waits whether it was but a moment, for no longer than a decision may take.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TypeVar

from gateway.serving.ports import LedgerUnavailable
from gateway.serving.store_time import HELD_UP_S, StoreTime
from gateway.telemetry import admission as metrics
from gateway.telemetry.logs import log_failure
from gateway.telemetry.process import STORE_ROUND_TRIP

PING_PERIOD_S = 0.1
"""Between pings of a store that is away."""
MOMENT_S = 0.5
"""A store that is away for less may only have stood still: it is pinged four times as often."""
REGULAR_PING_S = 0.25
"""Between pings of a store that answers, also while it is asked: an idle one's loss is seen before
a request meets it, and its pulse goes on (`adapters.pulse`), so that a loss of writes is seen."""
_log = logging.getLogger(__name__)
Reply = TypeVar("Reply")


class StoreState(IntEnum):
    """What is known of the store; the metric `weir_store_state` shows the number."""

    OPEN = 0
    SUSPECT = 1
    RETURNING = 2
    """It answers; what it must be told before new requests is being told."""
    AWAY = 3


class StoreAway(Exception):
    """The store is known to be away, so it was not asked."""


class StoreWatch:
    """Every call to the store goes through `ask`, which learns from how it ends.

    `on_return` tells a store that answers again what it must know before new requests, and raises
    LedgerUnavailable where it stops answering meanwhile. `on_broken` is called where a call failed
    otherwise than by a time-out: what answers next may be another server.
    """

    def __init__(
        self,
        ping: Callable[[], Awaitable[None]],
        *,
        timeout_ms: int,
        on_return: Callable[[], Awaitable[None]],
        on_broken: Callable[[], None] = lambda: None,
    ) -> None:
        self._ping = ping
        self._timeout_s = timeout_ms / 1000
        self._on_return = on_return
        self._on_broken = on_broken
        self._state = StoreState.OPEN
        self._answers = 0
        self._judging: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._opened.set()
        self._away_at_s = 0.0

    @property
    def state(self) -> StoreState:
        """What is known now."""
        return self._state

    @property
    def is_open(self) -> bool:
        """Whether requests are decided by the store."""
        return self._state in (StoreState.OPEN, StoreState.SUSPECT)

    async def ask(self, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """The reply. Raises LedgerUnavailable, at once where the store is away."""
        if self._state is StoreState.AWAY:
            raise LedgerUnavailable(StoreAway)
        loop = asyncio.get_running_loop()
        doubt = loop.call_later(self._timeout_s / 2, self._suspect)
        try:
            reply = await call()
        except LedgerUnavailable as error:
            if not issubclass(error.reason, TimeoutError):
                self._on_broken()
            self._suspect()
            raise
        finally:
            doubt.cancel()
        self._answered()
        return reply

    async def lives(self) -> bool:
        """Whether the store answers a ping, asked after a call of it failed."""
        if self._state is StoreState.AWAY:
            return False
        self._judge()
        assert self._judging is not None  # noqa: S101 - `_judge` has just set it
        await asyncio.shield(self._judging)
        return self.state is not StoreState.AWAY

    async def until_open(self) -> bool:
        """Whether requests are decided by the store; waits, for no longer than a decision may
        take, where it is just coming back or has just gone."""
        if not self.is_open and (self._state is StoreState.RETURNING or self._is_just_gone):
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._opened.wait()
            except TimeoutError:
                return False
        return self.is_open

    async def until_judged(self) -> bool:
        """Whether the store can be asked: as `until_open`, and a doubt is resolved first."""
        if self._state is StoreState.SUSPECT and self._judging is not None:
            await asyncio.shield(self._judging)
        return self.is_open

    async def run(self) -> None:
        """Notice a loss while nothing is asked, and a return; for ever."""
        while True:
            if self._state is StoreState.AWAY:
                await asyncio.sleep(PING_PERIOD_S / 4 if self._is_just_gone else PING_PERIOD_S)
                await self._look_for_it()
                continue
            await asyncio.sleep(REGULAR_PING_S)
            await self._regular_ping()

    @property
    def _is_just_gone(self) -> bool:
        return time.monotonic() - self._away_at_s < MOMENT_S

    def _suspect(self) -> None:
        if self._state is StoreState.OPEN:
            self._move(StoreState.SUSPECT)
        self._judge()

    def _judge(self) -> None:
        if self._judging is None and self._state is not StoreState.AWAY:
            self._judging = asyncio.create_task(self._judged())

    async def _judged(self) -> None:
        answers = self._answers
        try:
            await self._pinged(self._timeout_s / 2)
        except LedgerUnavailable as error:
            if self._answers == answers:
                self._gone(error)
        except Exception as error:  # noqa: BLE001 - a bug is no answer, and not the store's silence
            log_failure(_log, error, "the store of leases could not be pinged")
        finally:
            self._judging = None

    async def _pinged(self, within_s: float) -> None:
        """Answered in time, or asked again where this process was held up."""
        for is_last in (False, True):
            began = time.monotonic()
            try:
                async with StoreTime(within_s):
                    await self._ping()
            except TimeoutError:
                late_s = time.monotonic() - began - within_s
                if is_last or late_s < HELD_UP_S:
                    raise LedgerUnavailable(TimeoutError) from None
            except LedgerUnavailable as error:
                if not issubclass(error.reason, TimeoutError):
                    self._on_broken()
                raise
            else:
                self._answered()
                return

    async def _regular_ping(self) -> None:
        """A call as any other: that it alone comes late is a doubt, and no loss."""

        async def call() -> None:
            try:
                with STORE_ROUND_TRIP.time():
                    async with asyncio.timeout(self._timeout_s):
                        await self._ping()
            except TimeoutError:
                raise LedgerUnavailable(TimeoutError) from None

        try:
            await self.ask(call)
        except LedgerUnavailable:
            await self.lives()
        except Exception as error:  # noqa: BLE001 - as in `_judged`
            log_failure(_log, error, "the store of leases could not be pinged")

    async def _look_for_it(self) -> None:
        try:
            await self._pinged(self._timeout_s)
            self._move(StoreState.RETURNING)
            await self._on_return()
        except LedgerUnavailable as error:
            self._gone(error)
        except Exception as error:  # noqa: BLE001 - logged; the next ping tries again
            log_failure(_log, error, "the store could not be told what it must know")
            self._move(StoreState.AWAY)
        else:
            if self._state is StoreState.RETURNING:
                self._move(StoreState.OPEN)

    def _answered(self) -> None:
        self._answers += 1
        if self._state is StoreState.SUSPECT:
            self._move(StoreState.OPEN)

    def _gone(self, error: LedgerUnavailable) -> None:
        if self.is_open:
            _log.warning("the store of leases does not answer: %s", error.reason.__name__)
            self._away_at_s = time.monotonic()
        self._move(StoreState.AWAY)

    def _move(self, state: StoreState) -> None:
        if state is StoreState.OPEN and self._state is StoreState.RETURNING:
            _log.info("the store of leases answers again")
        self._state = state
        metrics.STORE_STATE.set(state)
        if self.is_open:
            self._opened.set()
        else:
            self._opened.clear()

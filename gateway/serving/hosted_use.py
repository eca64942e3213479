"""Which hosted providers serve requests now, over all gateways, and since when.

Each gateway tells once a second what it has running there. One request after another is one use:
it is over when nothing has run for ten seconds.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue.keeping import forever

PERIOD_S = 1.0
QUIET_MS = 10_000
"""A use is over after so long without a request."""
TOLD_MS = 5_000
"""What a gateway said longer ago than this counts no more: it is gone."""


class Use(NamedTuple):
    """Requests that run at one provider now, and since when (Unix ms) it has been in use."""

    running: int
    since_ms: int


class Uses(Protocol):
    """What all gateways use. Every method raises LedgerUnavailable."""

    async def tell(self, uses: Mapping[str, Use], at_ms: int) -> None:
        """Put what this gateway uses in the place of what it told before; nothing is nothing."""

    async def told(self, since_ms: int) -> Sequence[Mapping[str, Use]]:
        """What each gateway uses that told it after an instant (Unix ms)."""


@dataclass
class _Own:
    running: int = 0
    since_ms: int = 0
    last_ms: int = 0


class HostedUse:
    """What this gateway uses, and what all do, by the provider's id."""

    def __init__(self, store: Uses, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._own: dict[str, _Own] = {}
        self._has_told = False

    def began(self, provider: str) -> None:
        """A stream is opened there."""
        now_ms = self._clock.now_ms()
        own = self._own.setdefault(provider, _Own())
        if not own.running and now_ms - own.last_ms >= QUIET_MS:
            own.since_ms = now_ms
        own.running += 1
        own.last_ms = now_ms

    def ended(self, provider: str) -> None:
        """And has ended."""
        own = self._own[provider]
        own.running -= 1
        own.last_ms = self._clock.now_ms()

    def own(self) -> dict[str, Use]:
        """What this gateway uses now, or did within ten seconds."""
        now_ms = self._clock.now_ms()
        return {
            provider: Use(own.running, own.since_ms)
            for provider, own in self._own.items()
            if own.running or now_ms - own.last_ms < QUIET_MS
        }

    async def tell(self) -> None:
        """Tell the store; where nothing is used, once. Raises LedgerUnavailable."""
        own = self.own()
        if own or self._has_told:
            await self._store.tell(own, self._clock.now_ms())
            self._has_told = bool(own)

    async def run(self) -> None:
        """Tell once a second, for ever."""
        await forever("the telling of hosted use", self._turns)

    async def _turns(self) -> None:
        while True:
            with suppress(LedgerUnavailable):
                await self.tell()
            await asyncio.sleep(PERIOD_S)

    async def all(self) -> dict[str, Use]:
        """What all gateways use: how many requests in all, and since the earliest. Raises
        LedgerUnavailable."""
        total: dict[str, Use] = {}
        for uses in await self._store.told(self._clock.now_ms() - TOLD_MS):
            for provider, use in uses.items():
                known = total.get(provider, Use(0, use.since_ms))
                total[provider] = Use(
                    known.running + use.running, min(known.since_ms, use.since_ms)
                )
        return total

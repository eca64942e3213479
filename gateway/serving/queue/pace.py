"""How fast one stream comes: a sample for the ceilings of its worker at the end of each stretch."""

from collections.abc import Callable
from typing import Protocol

from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import Worker

NEVER_US = 2**62
Stretch = Callable[[int, int, int], None]
"""Told of a stretch: of the token that it began after and of its last one when they came
(`monotonic_us`), and how many tokens came in it."""


class Pace(Protocol):
    """What is seen of one stream."""

    due_us: int
    """From then on the next token is worth a call of `token`."""

    def token(self, now_us: int, tokens: int | None) -> None:
        """One came, and with it there are so many; None where the engine does not say while it
        runs."""

    def end(self, last_us: int | None, tokens: int, now_us: int) -> None:
        """The stream has ended: when its last token came, and how many it had in all."""


class Unpaced:
    """Of a stream that says nothing of a worker: at a hosted provider, or behind one address of
    unknown engines."""

    due_us = NEVER_US

    def token(self, now_us: int, tokens: int | None) -> None:
        """See `Pace`."""

    def end(self, last_us: int | None, tokens: int, now_us: int) -> None:
        """See `Pace`."""


class StreamPace:
    """Implements `Pace`. `on_stretch` hears of each stretch of `stretch_ms` and of the last one,
    `on_end` how long a stream that had tokens was open in all (ms; None of any other)."""

    def __init__(
        self,
        *,
        opened_us: int,
        stretch_ms: int,
        on_stretch: Stretch,
        on_end: Callable[[int | None], None],
    ) -> None:
        self.due_us = 0
        self._opened_us = opened_us
        self._stretch_us = stretch_ms * 1000
        self._on_stretch = on_stretch
        self._on_end = on_end
        self._began_us: int | None = None
        self._began_tokens = 0

    def token(self, now_us: int, tokens: int | None) -> None:
        """See `Pace`. An engine that counts only at the end gives one stretch: events are not
        tokens where it sends several at once."""
        if self._began_us is not None and tokens is not None:
            self._on_stretch(self._began_us, now_us, tokens - self._began_tokens)
        self._began_us = now_us
        self._began_tokens = 1 if tokens is None else tokens
        self.due_us = NEVER_US if tokens is None else now_us + self._stretch_us

    def end(self, last_us: int | None, tokens: int, now_us: int) -> None:
        """See `Pace`. Counts once."""
        self.due_us = NEVER_US
        began_us, self._began_us = self._began_us, None
        if began_us is not None and last_us is not None and last_us > began_us:
            self._on_stretch(began_us, last_us, tokens - self._began_tokens)
        stay_us = now_us - self._opened_us
        self._on_end(None if last_us is None else stay_us // 1000)


UNPACED = Unpaced()
Paces = Callable[[Worker, Band], Pace]
"""Of a stream that is opened on a worker, for a request of this band."""


def nobody_paces(worker: Worker, band: Band) -> Pace:
    """Nothing is learned."""
    return UNPACED

"""Time that costs none: a loop whose clock jumps to whatever is waited for next."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from memory_ports import START_MS


class _Instant(selectors.DefaultSelector):
    """Does not wait, but says how long it would have."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        if not ready and timeout:
            self.waited_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is the sum of what was waited for: an hour passes as soon as nobody has anything to
    do within it."""

    def __init__(self) -> None:
        self._instant = _Instant()
        super().__init__(self._instant)

    def time(self) -> float:
        return self._instant.waited_s


def virtually(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in virtual time."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


class LoopClock:
    """The running loop's time."""

    def now_ms(self) -> int:
        return START_MS + self.monotonic_us() // 1000

    def monotonic_us(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000_000)

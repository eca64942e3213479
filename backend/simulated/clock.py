"""The engine's time in a process that answers HTTP: real time, faster or slower."""

import asyncio
import time


class Clock:
    """Simulated milliseconds since it was made: `speed` of them in a real one."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._origin_s = time.monotonic()

    def now_ms(self) -> float:
        """Now."""
        return self.of(time.monotonic())

    def of(self, monotonic_s: float) -> float:
        """The simulated time of an instant of the monotonic clock."""
        return (monotonic_s - self._origin_s) * 1000 * self.speed

    def unix_ns(self, at_ms: float) -> int:
        """The Unix time of a simulated one, in nanoseconds."""
        ago_ms = (self.now_ms() - at_ms) / self.speed
        return time.time_ns() - int(ago_ms * 1e6)

    async def until_or(self, at_ms: float, event: asyncio.Event) -> bool:
        """Return then, or when `event` is set before. True: it was."""
        try:
            async with asyncio.timeout(max(0.0, (at_ms - self.now_ms()) / 1000 / self.speed)):
                await event.wait()
        except TimeoutError:
            return False
        return True

    async def until(self, at_ms: float) -> None:
        """Return then, or a little later; at once where that has passed, but not without letting
        others run."""
        await asyncio.sleep(max(0.0, (at_ms - self.now_ms()) / 1000 / self.speed))

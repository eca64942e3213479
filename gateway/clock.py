"""The clocks: the only place that reads them."""

import time


class SystemClock:
    """Implements `gateway.serving.ports.Clock`."""

    def now_ms(self) -> int:
        """Unix time in milliseconds, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """Microseconds on a clock that never jumps."""
        return time.monotonic_ns() // 1_000

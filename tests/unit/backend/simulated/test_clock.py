"""The engine's clock in a process that answers HTTP."""

import time

import pytest

from backend.simulated.clock import Clock


@pytest.mark.parametrize("speed", [0.25, 1.0, 4.0])
def test_speed(speed: float) -> None:
    """So many simulated milliseconds lie in a real one, and back."""
    clock = Clock(speed)
    first = time.monotonic()
    assert clock.of(first + 2.0) - clock.of(first) == pytest.approx(2000 * speed)
    at_ns = clock.unix_ns(clock.now_ms() + 1000 * speed)
    assert at_ns - time.time_ns() == pytest.approx(1e9, abs=1e8)


async def test_until() -> None:
    """Waits in real time what that is, and not at all for what has passed."""
    clock = Clock(10.0)
    at_ms = clock.now_ms() + 500
    began = time.monotonic()
    await clock.until(at_ms)
    assert 0.045 < time.monotonic() - began < 3.0
    assert clock.now_ms() >= at_ms - 10
    await clock.until(0.0)

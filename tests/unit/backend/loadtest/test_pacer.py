"""Calls at fixed instants: in order, announced ahead, and never early."""

import asyncio
import time

import pytest

from backend.loadtest.pacer import READY_AHEAD_S, Pacer
from backend.loadtest.run_clock import RunClock


async def test_calls_are_in_order_and_never_early() -> None:
    """Also those of one instant, and those whose time had passed before the start."""
    start_s = time.monotonic()
    instants_s = [start_s - 1.0, *[start_s + 0.19 + n // 2 * 0.004 for n in range(40)]]
    said: list[tuple[str, int]] = []
    early_s: list[float] = []
    done = asyncio.Event()

    def due(n: int) -> None:
        early_s.append(instants_s[n] - time.monotonic())
        said.append(("due", n))
        if n == 40:
            done.set()

    pacer = Pacer(instants_s, lambda n: said.append(("ready", n)), due)
    pacer.start()
    await asyncio.wait_for(done.wait(), 10)
    assert pacer.called == 41
    assert [n for what, n in said if what == "due"] == list(range(41))
    assert [n for what, n in said if what == "ready"] == list(range(41))
    assert all(said.index(("ready", n)) < said.index(("due", n)) for n in range(41))
    assert said[:2] == [("ready", 0), ("due", 0)], "what is far off is not announced yet"
    assert max(early_s) <= 0
    assert sorted(early_s)[30] >= -0.01


async def test_nothing_is_called_after_a_stop() -> None:
    """Not even what was announced."""
    called: list[int] = []
    instants_s = [time.monotonic() + READY_AHEAD_S / 2 + n * 0.001 for n in range(3)]
    announced: list[int] = []
    pacer = Pacer(instants_s, announced.append, called.append)
    pacer.start()
    pacer.stop()
    await asyncio.sleep(READY_AHEAD_S * 2)
    assert announced == [0, 1, 2]
    assert called == []


def test_the_targets_time_and_ours() -> None:
    """On a clock of tenfold speed a second of the target's is a tenth of ours."""
    clock = RunClock(start_s=5.0, speed=10.0)
    assert clock.at_s(1000.0) == 5.1
    assert clock.ms(5.1) == pytest.approx(1000.0)

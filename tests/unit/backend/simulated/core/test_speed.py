"""The core is cheap enough for accelerated and virtual time. Bounds are three times the promise."""

import time
from collections.abc import Callable

from simulated_core import Played, played, request, text


def best_ms(play: Played, prepare: Callable[[int], None]) -> float:
    """The CPU time of the cheapest of 50 steps."""
    best = float("inf")
    for number in range(50):
        prepare(number)
        began = time.process_time()
        play.step()
        best = min(best, time.process_time() - began)
    return best * 1000


def test_a_decode_step_of_250_costs_half_a_millisecond() -> None:
    """Promised."""
    play = played(max_total_tokens=640_000)
    play.submit(*(request(text(100, 1000 * n), 500) for n in range(250)))
    while play.replica.load().running < 250:
        play.step()
    assert best_ms(play, lambda _: None) < 1.5
    assert set(play.kinds[-50:]) == {"decode"}


def test_a_prefill_of_8192_tokens_costs_a_millisecond() -> None:
    """Promised, with 190,000 tokens of the prompt before it."""
    play = played(max_total_tokens=640_000)
    shared = text(190_000)
    play.submit(request(shared, 1))
    play.drain()
    tails = [shared + text(8192, 10_000_000 + 10_000 * n) for n in range(50)]

    def submit(number: int) -> None:
        play.drain()
        play.submit(request(tails[number], 3))

    assert best_ms(play, submit) < 3
    assert play.steps[-1].new_tokens == 8192

"""What is shown while a run lasts."""

import io
from dataclasses import replace

from backend.loadtest.progress import Counts, Progress, progress_line

COUNTS = Counts(
    elapsed_ms=12_400,
    duration_ms=60_000,
    sent=52,
    planned=240,
    ok=40,
    errors=2,
    ttft_p95_ms=1312.4,
)


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_line_says_how_far_the_run_is() -> None:
    """In the order in which one reads it."""
    assert progress_line(COUNTS) == (
        "12 of 60 s, sent 52 of 240, in flight 10, ok 40, errors 2, TTFT p95 1,312 ms"
    )
    assert progress_line(replace(COUNTS, ttft_p95_ms=None)).endswith("TTFT p95 -")
    assert progress_line(replace(COUNTS, elapsed_ms=61_000)).startswith("61 s, draining, sent 52 ")


def test_a_terminal_has_one_line_that_is_written_over() -> None:
    """It is taken away before a line that stays."""
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, live=True, clock=clock)
    progress.begin("4 rps")
    progress.show(COUNTS)
    progress.show(COUNTS)
    clock.now_s += 0.3
    progress.show(COUNTS)
    progress.say("done")
    line = f"\r\x1b[K4 rps: {progress_line(COUNTS)}"
    assert stream.getvalue() == f"{line}{line}\r\x1b[Kdone\n"


def test_a_log_has_a_line_every_five_seconds() -> None:
    """Whole lines, and none in the first five."""
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, live=False, clock=clock)
    progress.begin("4 rps")
    for _ in range(120):
        progress.show(COUNTS)
        clock.now_s += 0.1
    progress.end()
    assert stream.getvalue() == f"4 rps: {progress_line(COUNTS)}\n" * 2

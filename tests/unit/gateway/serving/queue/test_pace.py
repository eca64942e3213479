"""What one stream tells of how fast it comes."""

from gateway.serving.queue.pace import NEVER_US, UNPACED, StreamPace

STRETCH_US = 10_000_000


class Told:
    """A pace opened at 1 s, and what it has told."""

    def __init__(self) -> None:
        self.stretches: list[tuple[int, int, int]] = []
        self.stays: list[int | None] = []
        self.pace = StreamPace(
            opened_us=1_000_000,
            stretch_ms=10_000,
            on_stretch=lambda began, ended, tokens: self.stretches.append((began, ended, tokens)),
            on_end=self.stays.append,
        )


def test_a_long_answer_is_a_sample_each_stretch_and_at_its_end() -> None:
    told = Told()
    pace, first_us = told.pace, 2_000_000
    assert pace.due_us <= first_us
    pace.token(first_us, 1)
    assert pace.due_us == first_us + STRETCH_US
    pace.token(first_us + STRETCH_US + 7, 301)
    pace.end(first_us + STRETCH_US + 500_007, 311, 13_000_000)
    assert told.stretches == [
        (first_us, first_us + STRETCH_US + 7, 300),
        (first_us + STRETCH_US + 7, first_us + STRETCH_US + 500_007, 10),
    ]
    assert told.stays == [12_000]
    assert pace.due_us == NEVER_US


def test_an_engine_that_counts_only_at_the_end_gives_one_stretch() -> None:
    """Its events may be several tokens each, so they are not counted for tokens."""
    told = Told()
    told.pace.token(2_000_000, None)
    assert told.pace.due_us == NEVER_US
    told.pace.end(62_000_000, 901, 62_000_000)
    assert told.stretches == [(2_000_000, 62_000_000, 900)]


def test_a_stream_without_a_token_tells_nothing_but_that_it_is_over() -> None:
    told = Told()
    told.pace.end(None, 0, 9_000_000)
    assert (told.stretches, told.stays) == ([], [None])


def test_a_single_token_is_no_stretch() -> None:
    told = Told()
    told.pace.token(2_000_000, 1)
    told.pace.end(2_000_000, 1, 2_100_000)
    assert (told.stretches, told.stays) == ([], [1_100])


def test_what_is_not_looked_at_is_never_due() -> None:
    UNPACED.token(5, 1)
    UNPACED.end(5, 1, 5)
    assert UNPACED.due_us == NEVER_US

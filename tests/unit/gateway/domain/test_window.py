import hypothesis.strategies as st
from hypothesis import example, given

from gateway.domain.window import STANDSTILL_S, Window

START_MS = 1_800_000_000_000
LIMIT = 100
STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 1_500), st.integers(0, 70_000)),  # ms since the one before
        st.integers(1, LIMIT),  # reserved
        st.integers(0, LIMIT),  # used, at most what was reserved
        st.integers(0, 90_000),  # ms until it settles
        st.sampled_from([0, 0, 0, 3_000, 20_000, 400_000]),  # ms by which the clock steps back
    ),
    max_size=40,
)


def worst_trailing_minute(charges: list[tuple[int, int]]) -> int:
    """The most tokens in any (t - 60 s, t], over all t at which something was charged."""
    return max(
        (
            sum(tokens for at_ms, tokens in charges if end_ms - 60_000 < at_ms <= end_ms)
            for end_ms, _ in charges
        ),
        default=0,
    )


@given(steps=STEPS, offset_ms=st.integers(0, 999))
@example(steps=[(0, 100, 100, 0, 0), (60_000, 100, 100, 0, 0)], offset_ms=999)
@example(
    steps=[(0, 100, 0, 90_000, 20_000), (61_000, 100, 100, 90_000, 0), (40_000, 1, 1, 0, 0)],
    offset_ms=0,
)
def test_no_trailing_minute_holds_more_than_the_limit(
    steps: list[tuple[int, int, int, int, int]], offset_ms: int
) -> None:
    """INV-3: where every reservation covers its request, at any offset, whatever is refunded and
    however often the clock steps back meanwhile."""
    window, real_ms, behind_ms = Window(), START_MS + offset_ms, 0
    pending: list[tuple[int, int, int]] = []  # settles at (real time), second, refund
    charges: list[tuple[int, int]] = []
    for wait_ms, reserved, used, run_ms, back_ms in steps:
        real_ms += wait_ms
        for due in sorted(p for p in pending if p[0] <= real_ms):
            pending.remove(due)
            window.advance(due[0] - behind_ms)
            window.refund(due[1], tokens=due[2], requests=0)
        second = window.advance(real_ms - behind_ms)
        if window.tokens + reserved <= LIMIT:
            window.charge(second, tokens=reserved, requests=1)
            charges.append((real_ms, min(used, reserved)))
            pending.append((real_ms + run_ms, second, reserved - min(used, reserved)))
        behind_ms += back_ms
    assert worst_trailing_minute(charges) <= LIMIT


@given(
    charges=st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 50)), min_size=1),
    excess=st.integers(1, 50),
)
def test_retry_after_is_the_instant_at_which_there_is_room(
    charges: list[tuple[int, int]], excess: int
) -> None:
    """R07: one millisecond before it too little has aged out, at it enough has."""
    window, now_ms = Window(), START_MS
    for wait_ms, tokens in charges:
        now_ms += wait_ms
        window.charge(window.advance(now_ms), tokens=tokens, requests=1)
    window.advance(now_ms)
    held = window.tokens
    excess = min(excess, held)
    wait_ms = window.wait_ms(now_ms, excess_tokens=excess)
    window.advance(now_ms + wait_ms - 1)
    assert held - window.tokens < excess
    window.advance(now_ms + wait_ms)
    assert held - window.tokens >= excess


def test_what_was_spent_at_once_comes_back_after_a_minute() -> None:
    """R07: exhausted at 0 s, a retry at 61 s passes, and at 10 s the wait is 50 s, give or take one
    cell."""
    window = Window()
    window.charge(window.advance(START_MS), tokens=100, requests=1)
    window.advance(START_MS + 10_000)
    assert window.wait_ms(START_MS + 10_000, excess_tokens=1) == 51_000
    window.advance(START_MS + 61_000)
    assert window.tokens == 0


def test_a_refund_goes_to_the_cell_that_was_charged() -> None:
    """What is given back ages out with what it was taken from."""
    window = Window()
    first = window.advance(START_MS)
    window.charge(first, tokens=100, requests=1)
    second = window.advance(START_MS + 30_000)
    window.charge(second, tokens=10, requests=1)
    window.refund(first, tokens=90, requests=1)
    assert (window.tokens, window.requests) == (20, 1)
    window.advance(START_MS + 61_000)
    assert window.tokens == 10


def test_a_late_refund_is_dropped() -> None:
    """What has aged out cannot be given back again."""
    window = Window()
    first = window.advance(START_MS)
    window.charge(first, tokens=100, requests=1)
    window.charge(window.advance(START_MS + 61_000), tokens=7, requests=1)
    window.refund(first, tokens=100, requests=1)
    assert (window.tokens, window.requests) == (7, 1)


def test_a_small_step_back_of_the_clock_waits() -> None:
    """L22: charges go to the newest cell until the clock is there again."""
    window = Window()
    newest = window.advance(START_MS)
    window.charge(newest, tokens=10, requests=1)
    assert window.advance(START_MS - STANDSTILL_S * 1000) == newest
    assert window.tokens == 10


def test_a_large_step_back_counts_longer_never_shorter() -> None:
    """A clock an hour back: what was charged counts for a whole minute of the new time."""
    window = Window()
    window.charge(window.advance(START_MS), tokens=10, requests=1)
    back_ms = START_MS - 3_600_000
    window.advance(back_ms)
    assert (window.tokens, window.requests) == (10, 1)
    window.advance(back_ms + 60_999)
    assert window.tokens == 10
    window.advance(back_ms + 61_000)
    assert window.tokens == 0


def test_a_refund_never_takes_what_others_charged() -> None:
    """INV-3: after a step back a cell may bear the old one's number, but not its charge."""
    window = Window()
    old = window.advance(START_MS)
    window.charge(old, tokens=50, requests=1)
    window.advance(START_MS - 70_000)
    window.advance(START_MS - 9_000)
    window.charge(window.advance(START_MS), tokens=20, requests=1)
    window.refund(old, tokens=50, requests=1)
    assert (window.tokens, window.requests) == (20, 1)


def test_refunds_count_again_once_the_clock_has_caught_up() -> None:
    """A step back costs refunds only until the clock is where it was."""
    window = Window()
    window.charge(window.advance(START_MS), tokens=50, requests=1)
    window.advance(START_MS - 30_000)
    later = window.advance(START_MS + 1_000)
    window.charge(later, tokens=20, requests=1)
    window.refund(later, tokens=15, requests=0)
    assert window.tokens == 55
    window.advance(START_MS + 62_000)
    assert window.tokens == 0


def test_a_clock_that_steps_back_and_returns_forgets_nothing() -> None:
    """INV-3: one look at a wrong time, or charges under it, count a minute from the return."""
    window = Window()
    window.charge(window.advance(START_MS), tokens=50, requests=1)
    window.charge(window.advance(START_MS - 70_000), tokens=30, requests=1)
    window.advance(START_MS + 2_000)
    assert (window.tokens, window.requests) == (80, 2)
    window.advance(START_MS + 62_999)
    assert window.tokens == 80
    window.advance(START_MS + 63_000)
    assert window.tokens == 0


def test_a_clock_that_catches_up_counts_once_more_and_then_as_ever() -> None:
    """Nobody can tell that from a return; it happens once."""
    window = Window()
    window.charge(window.advance(START_MS), tokens=50, requests=1)
    window.charge(window.advance(START_MS - 30_000), tokens=20, requests=1)
    for ms in range(-29_000, 61_000, 1_000):
        window.advance(START_MS + ms)
        assert window.tokens == 70
    window.charge(window.advance(START_MS + 60_000), tokens=7, requests=1)
    window.advance(START_MS + 61_000)
    assert window.tokens == 7

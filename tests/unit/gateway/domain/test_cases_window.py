"""Reports of windows that never ended, ended too soon or forgot what they counted."""

import hypothesis.strategies as st
from admission_store import Store, granted, refused
from hypothesis import given

from gateway.domain.admission import Granted, Refused
from gateway.domain.tenant import Limits


def test_l06_hits_do_not_keep_a_window_open() -> None:
    """L06, L08, L05: 60 of 100 at once, then one token a second, without a pause: after 61 s the
    60 are gone, though something was counted in every second."""
    store = Store(Limits(tpm=100))
    store.acquire("first", 60)
    store.settle("first", 60)
    for second in range(1, 61):
        store.now_ms += 1_000
        decision = store.acquire(f"{second}", 1)
        assert isinstance(decision, Granted) is (second <= 40)
        store.settle(f"{second}", 1)
    assert store.tokens == 100
    store.now_ms += 1_000
    assert store.tokens == 40
    assert isinstance(store.acquire("again", 60), Granted)


def test_l10_a_small_cost_after_a_large_one_is_counted_too() -> None:
    """L10: 90, then 5, of 100: 95, and 6 do not fit; the other way round the same."""
    for costs in ((90, 5), (5, 90)):
        store = Store(Limits(tpm=100))
        for number, cost in enumerate(costs):
            assert isinstance(store.acquire(f"{number}", cost), Granted)
            store.now_ms += 1_000
        no = refused(store.acquire("more", 6))
        assert (no.used, no.need) == (95, 6)


def test_l11_what_was_read_is_not_written_over() -> None:
    """L11: a flood whose every request saw an empty window before any was decided: the decision
    itself looks, so exactly the limit passes."""
    store = Store(Limits(tpm=100))
    looks = [store.tokens for _ in range(300)]
    decisions = [store.acquire(f"{number:03}", 10) for number in range(len(looks))]
    assert looks == [0] * 300
    assert sum(isinstance(decision, Granted) for decision in decisions) == 10


def test_l13_no_minute_is_free() -> None:
    """L13: a tenant that asks four times a second for ten minutes, at six times its limit: what is
    admitted in any trailing 60 s is at most the limit, and no minute has none."""
    store = Store(Limits(tpm=100))
    admitted = []
    for step in range(4 * 600):
        if isinstance(store.acquire(f"{step}", 3), Granted):
            admitted.append(store.now_ms)
        store.settle(f"{step}", 3)
        store.now_ms += 250
    for end_ms in admitted:
        within = [at_ms for at_ms in admitted if end_ms - 60_000 < at_ms <= end_ms]
        assert 3 * len(within) <= 100
    first_ms = admitted[0]
    by_minute = [
        3 * sum(minute * 61_000 <= at_ms - first_ms < (minute + 1) * 61_000 for at_ms in admitted)
        for minute in range(9)
    ]
    assert by_minute == [99] * 9, by_minute


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60), st.integers(0, 3_000)), max_size=60)
)
def test_l18_what_remains_is_never_more_than_the_limit(steps: list[tuple[int, int, int]]) -> None:
    """L18: however reservations, refunds and debts follow each other, and whatever time passes, use
    is never below 0; and it falls while requests go on arriving."""
    store = Store(Limits(tpm=100))
    for number, (reserved, used, wait_ms) in enumerate(steps):
        decision = store.acquire(f"{number}", reserved)
        if isinstance(decision, Granted):
            assert 0 <= decision.uses[0].tokens <= 100
        store.settle(f"{number}", used)
        store.now_ms += wait_ms
        assert store.tokens >= 0
        assert store.requests >= 0


def test_l18_use_falls_while_refused_requests_arrive() -> None:
    """L18: a client that asks all the time is let in as soon as one that waits."""
    waiting, pushing = Store(Limits(tpm=100)), Store(Limits(tpm=100))
    for store in (waiting, pushing):
        store.acquire("first", 100)
        store.settle("first", 100)
    for attempt in range(610):
        assert isinstance(pushing.acquire(f"{attempt}", 1), Refused)
        pushing.now_ms += 100
    waiting.now_ms = pushing.now_ms
    for store in (waiting, pushing):
        assert granted(store.acquire("again", 100)).uses[0].tokens == 100


def test_l22_a_burst_within_a_blink_is_counted_whole() -> None:
    """L22: four a minute, 300 in 53 ms: four, and the wait is the minute that it is."""
    store = Store(Limits(rpm=4))
    decisions = []
    for number in range(300):
        decisions.append(store.acquire(f"{number:03}"))
        store.now_ms += number % 6 == 0
    assert [isinstance(decision, Granted) for decision in decisions].count(True) == 4
    assert 60_000 < (refused(decisions[-1]).retry_after_ms or 0) <= 61_000

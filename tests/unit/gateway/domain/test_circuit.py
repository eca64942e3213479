import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.circuit import Circuit, CircuitPolicy, CircuitState, Leave

POLICY = CircuitPolicy(failures=5, within_ms=10_000, open_ms=5_000, open_ms_max=60_000)


def leave_of(circuit: Circuit, at_ms: int) -> Leave:
    """A leave that must be given."""
    leave = circuit.begin(at_ms)
    assert leave is not None
    return leave


def fail(circuit: Circuit, times: int, *, at_ms: int) -> None:
    """So many requests that fail at once."""
    for _ in range(times):
        circuit.failed(leave_of(circuit, at_ms), at_ms)


def opened() -> Circuit:
    """Open from 0 to 5,000 ms."""
    circuit = Circuit(POLICY)
    fail(circuit, 5, at_ms=0)
    return circuit


def test_five_failures_in_ten_seconds_open_it() -> None:
    """Q15: open for five seconds, then one request may try."""
    circuit = Circuit(POLICY)
    fail(circuit, 4, at_ms=0)
    assert circuit.state(0) is CircuitState.CLOSED
    fail(circuit, 1, at_ms=9_999)
    assert circuit.state(9_999) is CircuitState.OPEN
    assert circuit.begin(14_998) is None
    assert circuit.state(14_999) is CircuitState.HALF_OPEN


def test_failures_that_are_far_apart_do_not() -> None:
    """Four, and a fifth when the first is ten seconds old; nor with a success between them."""
    circuit = Circuit(POLICY)
    fail(circuit, 4, at_ms=0)
    fail(circuit, 1, at_ms=10_000)
    assert circuit.state(10_000) is CircuitState.CLOSED
    circuit = Circuit(POLICY)
    fail(circuit, 4, at_ms=0)
    circuit.succeeded(leave_of(circuit, 1))
    fail(circuit, 4, at_ms=2)
    assert circuit.state(2) is CircuitState.CLOSED


def test_half_open_lets_one_through() -> None:
    """A second waits until the first is known; one that tells nothing makes room."""
    circuit = opened()
    first = leave_of(circuit, 5_000)
    assert circuit.begin(5_001) is None
    circuit.abandoned(first)
    second = leave_of(circuit, 5_002)
    circuit.answered(second)
    assert circuit.state(5_003) is CircuitState.CLOSED
    assert circuit.begin(5_003) is not None


@pytest.mark.parametrize(
    ("fails", "open_ms"), [(1, 10_000), (2, 20_000), (3, 40_000), (4, 60_000), (9, 60_000)]
)
def test_each_failed_try_doubles_the_wait(fails: int, open_ms: int) -> None:
    """Q16: up to a minute."""
    circuit, now_ms = opened(), 5_000
    for _ in range(fails):
        while not circuit.may_try(now_ms):
            now_ms += 1_000
        fail(circuit, 1, at_ms=now_ms)
    assert circuit.state(now_ms + open_ms - 1) is CircuitState.OPEN
    assert circuit.state(now_ms + open_ms) is CircuitState.HALF_OPEN


def test_success_forgets() -> None:
    """The next opening is for the first time's length again."""
    circuit = opened()
    circuit.succeeded(leave_of(circuit, 5_000))
    fail(circuit, 5, at_ms=6_000)
    assert circuit.state(10_999) is CircuitState.OPEN
    assert circuit.state(11_000) is CircuitState.HALF_OPEN


def test_the_one_that_tried_can_still_fail_once_it_has_begun() -> None:
    """It counts as one of five."""
    circuit = opened()
    tried = leave_of(circuit, 5_000)
    circuit.answered(tried)
    circuit.failed(tried, 5_001)
    assert circuit.state(5_001) is CircuitState.CLOSED
    fail(circuit, 4, at_ms=5_002)
    assert circuit.state(5_002) is CircuitState.OPEN


@pytest.mark.parametrize("tells", ["failed", "succeeded", "answered", "abandoned"])
def test_what_began_before_it_opened_says_nothing_of_after(tells: str) -> None:
    """It neither lengthens an opening, nor ends it, nor takes or gives back another's try."""
    circuit = Circuit(POLICY)
    old = leave_of(circuit, 0)
    fail(circuit, 5, at_ms=0)
    tried = leave_of(circuit, 5_000)
    if tells == "failed":
        circuit.failed(old, 5_001)
    else:
        getattr(circuit, tells)(old)
    assert circuit.state(5_001) is CircuitState.HALF_OPEN
    assert circuit.begin(5_001) is None
    circuit.failed(tried, 5_002)
    assert circuit.state(15_001) is CircuitState.OPEN
    assert circuit.state(15_002) is CircuitState.HALF_OPEN


@given(st.lists(st.tuples(st.integers(0, 4_000), st.sampled_from(["ok", "bad", "left"]))))
def test_it_always_tries_again(steps: list[tuple[int, str]]) -> None:
    """Whatever happened, within the longest opening a request is let through."""
    circuit, now_ms = Circuit(POLICY), 0
    for wait_ms, ending in steps:
        now_ms += wait_ms
        leave = circuit.begin(now_ms)
        if leave is None:
            continue
        if ending == "ok":
            circuit.succeeded(leave)
        elif ending == "bad":
            circuit.failed(leave, now_ms)
        else:
            circuit.abandoned(leave)
    assert circuit.begin(now_ms + POLICY.open_ms_max) is not None

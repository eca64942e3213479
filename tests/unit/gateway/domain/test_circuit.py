import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.circuit import Circuit, CircuitPolicy, CircuitState

POLICY = CircuitPolicy(failures=5, within_ms=10_000, open_ms=5_000, open_ms_max=60_000)


def a_failing(times: int, *, at_ms: int = 0) -> Circuit:
    circuit = Circuit(POLICY)
    for _ in range(times):
        assert circuit.begin(at_ms)
        circuit.failed(at_ms)
    return circuit


def test_five_failures_in_ten_seconds_open_it() -> None:
    """Q15: open for five seconds, then one request may try."""
    circuit = a_failing(4)
    assert circuit.state(0) is CircuitState.CLOSED
    assert circuit.begin(9_999)
    circuit.failed(9_999)
    assert circuit.state(9_999) is CircuitState.OPEN
    assert not circuit.begin(14_998)
    assert circuit.state(14_999) is CircuitState.HALF_OPEN


def test_failures_that_are_far_apart_do_not() -> None:
    """Four, and a fifth when the first is ten seconds old."""
    circuit = a_failing(4)
    assert circuit.begin(10_000)
    circuit.failed(10_000)
    assert circuit.state(10_000) is CircuitState.CLOSED


def test_half_open_lets_one_through() -> None:
    """A second waits until the first is known; one that tells nothing makes room."""
    circuit = a_failing(5)
    assert circuit.begin(5_000)
    assert not circuit.begin(5_001)
    circuit.abandoned()
    assert circuit.begin(5_002)
    circuit.succeeded()
    assert circuit.state(5_003) is CircuitState.CLOSED
    assert circuit.begin(5_003)


@pytest.mark.parametrize(
    ("fails", "open_ms"), [(1, 10_000), (2, 20_000), (3, 40_000), (4, 60_000), (9, 60_000)]
)
def test_each_failed_try_doubles_the_wait(fails: int, open_ms: int) -> None:
    """Q16: up to a minute."""
    circuit, now_ms = a_failing(5), 5_000
    for _ in range(fails):
        while not circuit.begin(now_ms):
            now_ms += 1_000
        circuit.failed(now_ms)
    assert circuit.state(now_ms + open_ms - 1) is CircuitState.OPEN
    assert circuit.state(now_ms + open_ms) is CircuitState.HALF_OPEN


def test_success_forgets() -> None:
    """The next opening is for the first time's length again."""
    circuit = a_failing(5)
    assert circuit.begin(5_000)
    circuit.succeeded()
    for _ in range(5):
        circuit.failed(6_000)
    assert circuit.state(10_999) is CircuitState.OPEN
    assert circuit.state(11_000) is CircuitState.HALF_OPEN


def test_what_was_let_through_before_it_opened_changes_nothing() -> None:
    """Late failures neither lengthen an opening nor take the try of another."""
    circuit = a_failing(5)
    circuit.failed(1)
    assert circuit.state(5_000) is CircuitState.HALF_OPEN
    circuit.failed(5_000)
    assert circuit.begin(5_000)


@given(st.lists(st.tuples(st.integers(0, 4_000), st.sampled_from(["ok", "bad", "left"]))))
def test_it_always_tries_again(steps: list[tuple[int, str]]) -> None:
    """Whatever happened, within the longest opening a request is let through."""
    circuit, now_ms = Circuit(POLICY), 0
    for wait_ms, ending in steps:
        now_ms += wait_ms
        if circuit.begin(now_ms):
            if ending == "ok":
                circuit.succeeded()
            elif ending == "bad":
                circuit.failed(now_ms)
            else:
                circuit.abandoned()
    assert circuit.begin(now_ms + POLICY.open_ms_max)

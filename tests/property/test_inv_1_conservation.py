"""INV-1: every admitted request is live, lapsed or settled, exactly one of them, and at rest
nothing is held."""

import hypothesis.strategies as st
from admission_history import MONTH, History, Request
from hypothesis import given, settings

from gateway.domain import admission
from gateway.domain.admission import Settled

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "settle", "settle", "renew", "wait", "wait"]),
        st.integers(0, 30),  # which
        st.integers(1, 4),  # sequences
        st.integers(0, 60),  # tokens and cost
        st.one_of(st.integers(0, 4_000), st.integers(9_990, 10_010), st.integers(0, 90_000)),
    ),
    max_size=40,
)


def a_history() -> History:
    history = History()
    history.limit("tenant", 12, 400, None, 600)
    history.limit("key:k1", 8, None, 20, None)
    begun = admission.begin_month(history.state, MONTH, now_ms=history.now_ms)
    assert begun is not None
    admission.finish_month(history.state, MONTH, begun.at_ms, {}, now_ms=history.now_ms)
    return history


@settings(max_examples=250)
@given(steps=STEPS)
def test_what_is_held_is_what_the_history_says(steps: list[tuple[str, int, int, int, int]]) -> None:
    """After every step; and settlements count once, whatever lapsed before and is repeated."""
    history = a_history()
    for step, pick, sequences, tokens, ms in steps:
        known = history.requests
        chosen = known[pick % len(known)] if known else None
        if step == "acquire":
            history.acquire(pick, sequences, tokens, tokens)
        elif step == "wait":
            history.now_ms += ms
        elif chosen is not None and step == "settle":
            was_live, was_settled = chosen.is_live(history.now_ms), chosen.settled_ms is not None
            found = history.settle(chosen, tokens, min(tokens, chosen.cost))
            first = Settled.LIVE if was_live else Settled.LAPSED
            late_ms = history.now_ms - (chosen.settled_ms or 0)
            assert was_settled or found is first
            assert not was_settled or found is not first
            assert not was_settled or late_ms > 60_000 or found is Settled.REPEATED
        elif chosen is not None and step == "renew" and on_the_way(history, chosen):
            history.renew(chosen)
        history.look()
        check(history)
    for request in history.requests:
        if request.settled_ms is None:
            history.settle(request, request.reserved, request.cost)
    check(history)
    assert history.state.leases == history.state.lapsed == {}


def on_the_way(history: History, request: Request) -> bool:
    """Whether a renewal may arrive: of what runs, or sent before the settlement and delayed."""
    return request.settled_ms is None or history.now_ms - request.settled_ms < 60_000


def check(history: History) -> None:
    """Leases, counts and money are those of the requests that live by the history."""
    state, live = history.state, {request.rid for request in history.live()}
    ended = {request.rid for request in history.requests if request.settled_ms is not None}
    assert set(state.leases) == live
    assert set(state.lapsed) == {request.rid for request in history.requests} - live - ended
    for scope, fund in state.months[MONTH].money.items():
        of_scope = [request for request in history.requests if scope in request.scopes]
        assert fund.reserved_pico == history.sum_of(scope, lambda request: request.cost)
        assert fund.spent_pico == sum(request.spent for request in of_scope)
    for scope in state.scopes:
        assert state.running(scope) == history.sum_of(scope, lambda request: request.sequences)

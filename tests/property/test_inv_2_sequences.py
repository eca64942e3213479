"""INV-2: after every admission the sequences held in a scope are at most the limit then in force,
while holders renew in time."""

import hypothesis.strategies as st
from admission_history import PLACES, History, scope_names
from hypothesis import given, settings

from gateway.domain.admission import Granted

SCOPES = sorted({scope for place in range(len(PLACES)) for scope in scope_names(place)})
HOUR_MS = 3_600_000
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "acquire", "settle", "wait", "limit", "wrong look"]),
        st.integers(0, 30),  # which
        st.integers(1, 4),  # sequences
        st.one_of(st.none(), st.integers(0, 8)),  # a limit
        st.one_of(st.integers(0, 4_000), st.integers(9_990, 10_010), st.integers(0, 90_000)),
        st.booleans(),  # a gateway that has heard of no change of limits; holders that renew
    ),
    max_size=50,
)


@settings(max_examples=250)
@given(steps=STEPS, first=st.integers(0, 8))
def test_no_admission_passes_a_limit_on_sequences(
    steps: list[tuple[str, int, int, int | None, int, bool]], first: int
) -> None:
    """Over requests of several keys and models, limits that change, holders that die, gateways that
    offer limits of long ago, and requests that are decided at a time that was wrong."""
    history = History()
    history.limit("tenant", first, None, None, None)
    history.first_limits = dict(history.limits)
    for step, pick, sequences, limit, ms, flag in steps:
        live = history.live()
        if step == "acquire":
            decision = history.acquire(pick, sequences, 1, stale=flag)
            if isinstance(decision, Granted):
                check(history, scope_names(pick))
        elif step == "settle" and live:
            history.settle(live[pick % len(live)], 1)
        elif step == "limit":
            scope = SCOPES[pick % len(SCOPES)]
            history.limit(scope, limit, None, None, None)
            # Whoever changed it tells the store at once.
            history.tell(scope)
        elif step == "wait":
            history.now_ms += ms
            for request in history.live() if flag else []:
                history.renew(request)
        elif step == "wrong look":
            history.now_ms -= HOUR_MS
            history.acquire(pick, sequences, 1, stale=flag)
            history.now_ms += HOUR_MS


def check(history: History, scopes: tuple[str, ...]) -> None:
    """What the history says is held, against the limit that was set last."""
    for scope in scopes:
        limits = history.limits.get(scope)
        if limits is not None and limits.max_sequences is not None:
            held = history.sum_of(scope, lambda request: request.sequences)
            assert held <= limits.max_sequences

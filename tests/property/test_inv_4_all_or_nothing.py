"""INV-4: one decision covers all scopes and all kinds of limit; a refusal consumes nothing."""

import copy

import hypothesis.strategies as st
from admission_history import MONTH, PLACES, History, scope_names
from hypothesis import given, settings

from gateway.domain import admission
from gateway.domain.admission import Granted
from gateway.domain.scopes import ScopeLimits

SCOPES = sorted({scope for place in range(len(PLACES)) for scope in scope_names(place)})
LIMIT = st.sampled_from([None, None, 0, 1, 3, 6, 10])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "acquire", "settle", "wait", "limit"]),
        st.integers(0, 30),  # which
        st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(0, 6)),  # what it needs
        st.tuples(LIMIT, LIMIT, LIMIT, LIMIT),
        st.one_of(st.integers(0, 3_000), st.integers(0, 9_000)),
    ),
    max_size=40,
)


@settings(max_examples=250)
@given(
    steps=STEPS,
    limits=st.dictionaries(st.sampled_from(SCOPES), st.tuples(LIMIT, LIMIT, LIMIT, LIMIT)),
    is_known=st.booleans(),
)
def test_granted_where_every_scope_has_room_and_only_there(
    steps: list[tuple[str, int, tuple[int, int, int], tuple[int | None, ...], int]],
    limits: dict[str, tuple[int | None, ...]],
    is_known: bool,
) -> None:
    """The witness sums up the history of each scope and decides for itself; what is refused leaves
    no more behind than a look does."""
    history = History()
    for scope, of_scope in limits.items():
        history.limit(scope, *of_scope)
    begun = admission.begin_month(history.state, MONTH, now_ms=history.now_ms)
    if is_known and begun is not None:
        admission.finish_month(history.state, MONTH, begun.at_ms, {}, now_ms=history.now_ms)
    for step, pick, need, of_scope, ms in steps:
        sequences, tokens, cost = need
        live = history.live()
        if step == "wait":
            history.now_ms += ms
            for request in live:
                history.renew(request)
        elif step == "limit":
            history.limit(SCOPES[pick % len(SCOPES)], *of_scope)
        elif step == "settle" and live:
            request = live[pick % len(live)]
            history.settle(request, min(tokens, request.reserved), min(cost, request.cost))
        elif step == "acquire":
            offered = history.offered(pick)
            fits = all(has_room(history, scope, need, is_known) for scope in offered)
            looked_at = copy.deepcopy(history.state)
            admission.observe(looked_at, offered, now_ms=history.now_ms)
            decision = history.acquire(pick, sequences, tokens, cost)
            assert isinstance(decision, Granted) == fits
            assert fits or history.state == looked_at


def has_room(
    history: History, limits: ScopeLimits, need: tuple[int, int, int], is_known: bool
) -> bool:
    """By what was granted and settled since the beginning, whether one more fits in a scope."""
    sequences, tokens, cost = need
    scope, now_s = limits.scope, history.now_ms // 1000
    of_scope = [request for request in history.requests if scope in request.scopes]
    recent = [request for request in of_scope if request.granted_ms // 1000 > now_s - 61]
    charged = sum(r.reserved if r.used is None else r.used for r in recent)
    money = sum(r.cost if r.settled_ms is None else r.spent for r in of_scope)
    held = history.sum_of(scope, lambda request: request.sequences)
    return (
        (limits.max_sequences is None or held + sequences <= limits.max_sequences)
        and (limits.tpm is None or charged + tokens <= limits.tpm)
        and (limits.rpm is None or len(recent) + 1 <= limits.rpm)
        and (limits.budget_pico is None or (is_known and money + cost <= limits.budget_pico))
    )

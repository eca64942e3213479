"""INV-3: in any trailing 60 s, to the millisecond, the tokens used are at most the limit, where
every reservation covers its request; whatever lapses, is renewed late, ran while its gateway was
cut off, was lost by the store, and however often the store's clock steps back, to stay there or to
return."""

import hypothesis.strategies as st
from admission_history import History, Request
from hypothesis import example, given, settings
from memory_ports import TTL_MS

from gateway.domain.admission import Granted

LIMIT = 100
ACTIONS = ("acquire",) * 3 + ("settle", "renew", "late", "late", "lose", "back", "return")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "acquire",
                "acquire",
                "acquire",
                "settle",
                "renew",
                "late",
                "late",
                "lose",
                "back",
                "return",
            ]
        ),
        st.one_of(st.integers(0, 1_500), st.integers(0, 12_000), st.integers(49_000, 62_000)),
        st.integers(0, 30),  # which
        st.integers(1, LIMIT),  # reserved
        st.integers(0, LIMIT),  # used
    ),
    max_size=40,
)


class Minute:
    """Every token used, at the instant at which its request was let run, by a clock that never
    jumps."""

    def __init__(self) -> None:
        self.used: list[tuple[int, int]] = []

    def check(self) -> None:
        """At every instant at which the trailing minute can be fullest: when something was used."""
        for end_ms, _ in self.used:
            in_minute = [n for at_ms, n in self.used if end_ms - 60_000 < at_ms <= end_ms]
            assert sum(in_minute) <= LIMIT


KEPT = [("renew", 9_999, 0, 1, 0)] * 5
"""The first request is renewed for 50 s, less 5 ms."""


@settings(max_examples=300)
@given(steps=STEPS, returns=st.booleans())
@example(  # At the end of a second, and sixty seconds after its beginning.
    steps=[
        ("acquire", 999, 0, LIMIT, LIMIT),
        ("settle", 0, 0, 1, 0),
        ("acquire", 59_001, 0, LIMIT, LIMIT),
    ],
    returns=False,
)
@example(  # What is given back is given back where it was taken.
    steps=[
        ("acquire", 0, 0, 50, 0),
        *KEPT,
        ("acquire", 0, 0, 50, 50),
        ("settle", 5_000, 0, 1, 0),
        ("acquire", 6_500, 0, LIMIT, LIMIT),
    ],
    returns=False,
)
@example(  # A request ends unseen, another runs in its place, and the store is told of it.
    steps=[
        ("acquire", 0, 0, LIMIT, 0),
        *KEPT,
        ("late", 8_000, 0, LIMIT, LIMIT),
        ("renew", 1_000, 0, 1, 0),
        ("acquire", 2_500, 0, LIMIT, LIMIT),
    ],
    returns=False,
)
@example(  # The same, and nobody ever tells it.
    steps=[
        ("acquire", 0, 0, LIMIT, 0),
        *KEPT,
        ("late", 9_000, 0, LIMIT, LIMIT),
        ("acquire", 2_500, 0, LIMIT, LIMIT),
        ("acquire", 12_000, 0, LIMIT, LIMIT),
    ],
    returns=False,
)
@example(  # One look at a wrong time.
    steps=[
        ("acquire", 0, 0, LIMIT, LIMIT),
        ("back", 62_000, 0, 1, 0),
        ("return", 0, 0, 1, 0),
        ("acquire", 2_000, 0, LIMIT, LIMIT),
    ],
    returns=True,
)
@example(  # A charge under a wrong time.
    steps=[
        ("acquire", 0, 0, 50, 50),
        ("back", 10_000, 0, 1, 0),
        ("acquire", 9_000, 0, 50, 50),
        ("return", 0, 0, 1, 0),
        ("acquire", 52_000, 0, LIMIT, LIMIT),
    ],
    returns=True,
)
@example(  # The store has lost its last writes, and is told of them.
    steps=[
        ("acquire", 0, 0, LIMIT, LIMIT),
        ("forget", 100, 0, 1, 0),
        ("renew", 100, 0, 1, 0),
        ("acquire", 100, 0, LIMIT, LIMIT),
    ],
    returns=False,
)
def test_no_trailing_minute_holds_more_than_the_limit(
    steps: list[tuple[str, int, int, int, int]], returns: bool
) -> None:
    """One limit on the tenant, requests of several keys and models.

    Where the clock `returns`, the store could see that it had stepped back: behind what was charged
    last. Nothing tells it of a clock that was behind and never behind that.
    """
    history, minute, behind_ms = History(), Minute(), 0
    history.limit("tenant", None, LIMIT, None, None)
    late: set[str] = set()
    for step, ms, pick, reserved, used in steps:
        history.now_ms += ms
        real_ms = history.now_ms + behind_ms
        known = [request for request in history.requests if request.settled_ms is None]
        chosen = known[pick % len(known)] if known else None
        if step == "acquire":
            decision = history.acquire(pick, 1, reserved)
            if isinstance(decision, Granted):
                minute.used.append((real_ms, min(used, reserved)))
                history.requests[-1].used = min(used, reserved)
        elif step == "lose":
            history.lose()
        elif step == "forget":
            history.state.leases.clear()
            history.state.scopes.clear()
        elif step in ("back", "return"):
            behind_ms = jump(history, behind_ms, ms if step == "back" else None, returns=returns)
        elif chosen is None:
            continue
        elif step == "late" and may_run_late(chosen, history.now_ms):
            more = min(used, chosen.reserved - (chosen.used or 0))
            minute.used.append((real_ms, more))
            chosen.used = (chosen.used or 0) + more
            late.add(chosen.rid)
        elif step == "renew":
            history.renew(chosen, carried=chosen.rid in late)
            late.discard(chosen.rid)
        elif step == "settle":
            if chosen.rid in late:
                history.renew(chosen, carried=True)
            history.settle(chosen, chosen.used or 0)
    minute.check()


def jump(history: History, behind_ms: int, back_ms: int | None, *, returns: bool) -> int:
    """Set the store's clock back, or (None) right again; returns how far it is behind then."""
    if back_ms is None:
        history.now_ms += behind_ms if returns else 0
        return 0 if returns else behind_ms
    if returns:
        newest_s = max((request.second for request in history.requests), default=0)
        back_ms += max(0, history.now_ms - newest_s * 1000) + 6_000 if newest_s else 0
    history.now_ms -= back_ms
    history.tell("tenant")
    return behind_ms + back_ms


def may_run_late(request: Request, now_ms: int) -> bool:
    """Whether a gateway that is cut off may let another request run under the lease: confirmed less
    than one lease ago, and its cell counted until that has passed."""
    lapses_ms = request.renewed_ms + TTL_MS
    return now_ms < lapses_ms and (request.second + 61) * 1000 >= lapses_ms

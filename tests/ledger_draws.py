"""What the comparison of the ledger with its specification draws from."""

from typing import Any

import hypothesis.strategies as st

KEYS = ("k1", "k2")
MODELS = ("m|odd:name", "m2")
MONTHS = (
    "2026-12:1:2:USD",
    "2027-01:2:3:USD",
    "2027-02:3:4:USD",
    "",
    "2027-01:1:3:USD",
    "2027-01:2:3:JPY",
)
"""Of one tenant, which was billed in another zone for a while, and in another currency."""
UNIT = 10**12
# Mostly loose, and small enough that a demand often meets a limit exactly.
LIMIT = st.sampled_from([None, None, None, 12, 7, 4, 2, 1, 0])
TOKEN_LIMIT = st.sampled_from([None, None, None, 40, 24, 13, 8, 3])
PICO = st.one_of(
    st.integers(0, 5), st.sampled_from([UNIT - 1, UNIT, UNIT + 1, 3 * UNIT - 2, 10**9 * UNIT + 1])
)
BUDGET = st.sampled_from([None, None, None, 0, 7, 2 * UNIT + 1, 4 * UNIT, 10**10 * UNIT])
LIMITS = st.tuples(LIMIT, TOKEN_LIMIT, LIMIT, BUDGET)
WHERE = st.tuples(st.sampled_from(KEYS), st.sampled_from(MODELS))
MONTH = st.sampled_from([MONTHS[1], MONTHS[1], *MONTHS])

Drawn = tuple[int, int, int, bool, int]
DEMAND = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.booleans(), PICO)
BURST = st.lists(DEMAND, min_size=1, max_size=8)
SETTLEMENT: dict[str, Any] = {
    "pick": st.integers(0, 1 << 20),
    "used": st.tuples(st.integers(0, 10), PICO, st.booleans()),
    "base": st.sampled_from([(0, 0), (0, 0), (2, UNIT - 3)]),
}


def scope_names(key: str, model: str) -> tuple[str, ...]:
    return ("tenant", f"key:{key}", f"model:{model}", f"key:{key}/model:{model}")


SCOPES = st.sampled_from([s for k in KEYS for m in MODELS for s in scope_names(k, m)])

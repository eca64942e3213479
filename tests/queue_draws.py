"""What the parity test of a pool's queue asks for: tenants, wishes and workers, odd ones too."""

from typing import Any

import hypothesis.strategies as st

from gateway.domain.queue.tickets import Band

TENANTS = ("ten_1", "ten_10", "t e\r\nn", "{ü}:weir", "\x01\u6f22")
LOTS = ("", "key_1", "key_10", "\x01ü")
WORKERS = ("w1", "w10", "http://[::1]:80/ö")

WISH: dict[str, st.SearchStrategy[Any]] = {
    "tenant": st.sampled_from(TENANTS),
    "band": st.sampled_from(Band),
    "sequences": st.sampled_from([1, 1, 1, 2, 3]),
    "need_tokens": st.sampled_from([0, 100, 400, 900, 2_000]),
    "cost": st.sampled_from([0, 1, 50, 333, 2_000]),
    "weight": st.sampled_from([1, 1, 2, 3]),
    "wait_ms": st.sampled_from([0, 500, 5_000, 60_000, 60_000, 600_000]),
    "promote_after_ms": st.sampled_from([0, 3_000, 30_000, 300_000]),
    "waited_ms": st.sampled_from([0, 0, 700]),
    "taken_back": st.sampled_from([0, 0, 0, 2, 3]),
    "lot": st.sampled_from(LOTS),
}
WISHES = st.lists(st.fixed_dictionaries(WISH), min_size=1, max_size=5)
ROOM = st.fixed_dictionaries(
    {
        "id": st.sampled_from(WORKERS),
        "sequences_max": st.sampled_from([1, 2, 3, 4, 6, 2**60]),
        "batch_max": st.sampled_from([0, 1, 2, 4]),
        "tokens_max": st.sampled_from([500, 1_000, 2_500, 2**60]),
    }
)

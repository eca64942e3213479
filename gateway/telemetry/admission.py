"""Prometheus metrics of admission: what was decided, by what, and what the store is to it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Gauge, Histogram

from gateway.telemetry.buckets import DECISION_S

DECISIONS = Counter(
    "weir_admission_decisions_total",
    "Decisions: granted, the kind of limit that refused, or why there was none; by the store, by a "
    "share held while it is away, or without either.",
    ["result", "mode"],
)
DECISION_TIME = Histogram(
    "weir_admission_decision_seconds", "Time of a decision.", ["mode"], buckets=DECISION_S
)
STORE_STATE = Gauge(
    "weir_store_state", "The store of leases: 0 open, 1 suspect, 2 returning, 3 away."
)
RECREATED = Counter(
    "weir_leases_recreated_total", "Leases that the store had lost and that were held again."
)
EXCESS = Gauge(
    "weir_excess_sequences",
    "INV-2: sequences over a limit now, in tenants whose leases were held again after a lapse or a "
    "loss.",
)
EXCESS_SEEN = Counter(
    "weir_excess_sequences_seen_total",
    "INV-2: sequences over a limit, each counted when first seen.",
)
WITHHELD = Gauge("weir_withheld_settlements", "Settlements not sent yet because the store is away.")


@dataclass
class Decided:
    """How a decision went; filled in while it is made."""

    result: str = "unavailable"
    mode: str = "none"


@contextmanager
def deciding() -> Iterator[Decided]:
    """Count a decision and its time when the block ends, however it ends."""
    decided = Decided()
    began = time.perf_counter()
    try:
        yield decided
    finally:
        DECISIONS.labels(result=decided.result, mode=decided.mode).inc()
        DECISION_TIME.labels(mode=decided.mode).observe(time.perf_counter() - began)

"""Prometheus metrics of what workers may hold. Gauges are the same on every gateway within a
second; a decision is counted by the gateway that made it."""

from prometheus_client import Counter, Gauge

SEQUENCES = Gauge(
    "weir_queue_ceiling_sequences", "Sequences that may run on a worker, learned.", ["worker"]
)
BATCH = Gauge(
    "weir_queue_ceiling_batch_sequences",
    "Sequences on a worker up to which batch is sent to it, learned.",
    ["worker"],
)
DECISIONS = Counter(
    "weir_queue_ceiling_decisions_total",
    "Decisions about a worker's ceilings: cut, grown, kept, alone (no interactive is there any "
    "more), beside (it is there again), restarted (the worker was).",
    ["direction"],
)
SAMPLES = Counter(
    "weir_queue_ceiling_samples_total",
    "Stretches of answers seen on a full worker: within the target of the time per token, or over.",
    ["result"],
)


def forget(worker: str) -> None:
    """The worker is not there any more."""
    for gauge in (SEQUENCES, BATCH):
        gauge.remove(worker)

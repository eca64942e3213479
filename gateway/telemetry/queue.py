"""Prometheus metrics of waiting for a place, of this gateway: sums over gateways are the pool's."""

from prometheus_client import Counter, Gauge, Histogram

from gateway.telemetry.buckets import WAIT_S

WAITING = Gauge(
    "weir_queue_waiting_requests", "Requests that wait for a place on a worker.", ["request_class"]
)
WAITING_TOKENS = Gauge(
    "weir_queue_waiting_tokens",
    "Prompt and expected output tokens of the requests that wait for a place.",
    ["request_class"],
)
PARKED = Gauge(
    "weir_queue_parked_requests",
    "Requests that wait for their own tenant's limits.",
    ["request_class"],
)
WAIT_SECONDS = Histogram(
    "weir_queue_wait_seconds",
    "Seconds from asking for a place until it was had, time parked included.",
    ["request_class"],
    buckets=WAIT_S,
)
GRANTS = Counter(
    "weir_queue_grants_total",
    "Places had, by what told of them: the reply itself, a message, a renewal, or none because the "
    "store was away.",
    ["request_class", "told_by"],
)
TAKEN_BACK = Counter(
    "weir_queue_taken_back_total",
    "Places of batch asked back for interactive requests: given back, or kept since a token came "
    "first.",
    ["result"],
)
REFUSALS = Counter(
    "weir_queue_refusals_total",
    "Requests that got no place, by reason.",
    ["request_class", "reason"],
)
REENTERED = Counter(
    "weir_queue_reentered_total",
    "Tickets and places that the store did not know any more and was told again.",
    ["what"],
)

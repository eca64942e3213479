"""Prometheus metrics of pools as their store knows them: the same on every gateway, so that they
are not added up. What was not seen at the last scrape is not there."""

from prometheus_client import Gauge

_OF_A_CLASS = ["model", "request_class"]

WAITING = Gauge("weir_pool_waiting_requests", "Requests that wait for a place.", _OF_A_CLASS)
WAITING_TOKENS = Gauge(
    "weir_pool_waiting_tokens",
    "Prompt and expected output tokens of the requests that wait for a place.",
    _OF_A_CLASS,
)
WAITING_WEIGHTED = Gauge(
    "weir_pool_waiting_weighted_tokens",
    "The same as they count in the order: output twice.",
    _OF_A_CLASS,
)
OLDEST_WAIT = Gauge(
    "weir_pool_oldest_wait_seconds", "How long the oldest of them has waited.", _OF_A_CLASS
)
PREDICTED_WAIT = Gauge(
    "weir_pool_predicted_wait_seconds",
    "Until all that waits would have a place; absent while the pool's speed is not known.",
    _OF_A_CLASS,
)
PARKED = Gauge(
    "weir_pool_parked_requests", "Requests that wait for their own tenant's limits.", ["model"]
)
PLACE_SEQUENCES = Gauge(
    "weir_place_sequences", "Sequences of the places on a worker.", ["model", "worker"]
)
PLACE_TOKENS = Gauge(
    "weir_place_tokens",
    "KV tokens that the requests on a worker are expected to come to hold.",
    ["model", "worker"],
)
CEILING = Gauge(
    "weir_ceiling",
    "A worker's ceiling: `all` and `batch` in sequences, `tokens` in KV tokens; absent where there "
    "is none.",
    ["model", "worker", "kind"],
)
ALL = (
    WAITING, WAITING_TOKENS, WAITING_WEIGHTED, OLDEST_WAIT, PREDICTED_WAIT, PARKED,
    PLACE_SEQUENCES, PLACE_TOKENS, CEILING,
)  # fmt: skip

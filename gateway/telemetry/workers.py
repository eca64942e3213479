"""Prometheus metrics of workers, as this gateway sees them: the same on every gateway within a
second but for its own streams, so that they are not added up. Who is not there any more is not
shown; what an engine does not say is absent."""

from prometheus_client import Gauge

_OF_A_WORKER = ["model", "worker"]

INFO = Gauge(
    "weir_worker_info",
    "1 for each registered worker: the class that it is reserved for or `any`, whether an "
    "administrator drains it, and whether its figures are a simulator's.",
    ["model", "worker", "request_class", "draining", "simulated"],
)
HEALTHY = Gauge("weir_worker_healthy", "1 while a worker is healthy.", ["worker"])
IN_FLIGHT = Gauge(
    "weir_worker_in_flight_streams", "Streams that this gateway has open on it.", _OF_A_WORKER
)
RUNNING = Gauge(
    "weir_worker_running_requests", "Sequences that the engine says it runs.", _OF_A_WORKER
)
WAITING = Gauge(
    "weir_worker_waiting_requests",
    "Requests that wait in the engine's own queue, by what it says.",
    _OF_A_WORKER,
)
KV_USED = Gauge(
    "weir_worker_kv_used_tokens", "Tokens in use of the engine's KV pool.", _OF_A_WORKER
)
KV_TOTAL = Gauge(
    "weir_worker_kv_total_tokens", "Tokens that the engine's KV pool holds.", _OF_A_WORKER
)
LOAD_AGE = Gauge(
    "weir_worker_load_age_seconds",
    "Since the engine last said how much it has to do.",
    _OF_A_WORKER,
)
ALL = (INFO, HEALTHY, IN_FLIGHT, RUNNING, WAITING, KV_USED, KV_TOTAL, LOAD_AGE)

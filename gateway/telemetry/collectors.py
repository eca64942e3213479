"""Prometheus metrics of the collector: whether it takes what it is sent."""

import time

from prometheus_client import Gauge

SINCE_TAKEN = Gauge(
    "weir_otlp_since_taken_seconds",
    "Since the collector last took traces or metrics, or since the start; absent where none is "
    "named. Traces are sent only where there are any.",
    ["signal"],
)


class Taken:
    """When a collector last took something of one signal, `traces` or `metrics`."""

    def __init__(self, signal: str) -> None:
        """It counts from now on."""
        self._at_s = time.monotonic()
        SINCE_TAKEN.labels(signal).set_function(lambda: time.monotonic() - self._at_s)

    def now(self) -> None:
        """It was taken."""
        self._at_s = time.monotonic()

"""Prometheus metrics of the rebuilds of a month's spend."""

from prometheus_client import Counter, Histogram

from gateway.telemetry.buckets import REBUILD_S

REBUILDS = Counter(
    "weir_month_rebuilds_total",
    "Rebuilds of a tenant's month of spend in Redis, by how they ended.",
    ["result"],
)
REBUILD_SECONDS = Histogram(
    "weir_month_rebuild_seconds",
    "Time of a rebuild that was done.",
    buckets=REBUILD_S,
)

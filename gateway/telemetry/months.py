"""Prometheus metrics of the rebuilds of a month's spend."""

from prometheus_client import Counter, Histogram

REBUILDS = Counter(
    "weir_month_rebuilds_total",
    "Rebuilds of a tenant's month of spend in Redis, by how they ended.",
    ["result"],
)
REBUILD_SECONDS = Histogram(
    "weir_month_rebuild_seconds",
    "Time of a rebuild that was done.",
    buckets=(0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2),
)

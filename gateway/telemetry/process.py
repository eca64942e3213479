"""Prometheus metrics of the gateway's own process and of what its requests wait for in it. CPU,
memory and open files come from prometheus_client's own collector (`process_…`)."""

import asyncio
import platform
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import Counter, Gauge, Histogram

from gateway.telemetry.buckets import BATCH_S, COMMIT_S, LAG_S

_TICK_S = 0.25


def _version() -> str:
    """As it was installed; of a tree that was not nobody knows."""
    try:
        return version("weir")
    except PackageNotFoundError:
        return "unknown"


VERSION = _version()
BUILD_INFO = Gauge("weir_build_info", "1, with the release that runs.", ["version", "python"])
BUILD_INFO.labels(version=VERSION, python=platform.python_version()).set(1)
DRAINING = Gauge("weir_draining", "1 while the gateway stops and takes nothing new.")
BODY_BYTES = Gauge(
    "weir_body_bytes", "Bytes of bodies that have arrived and whose requests are not admitted yet."
)
TARGET = Gauge(
    "weir_target_seconds",
    "What first tokens (ttft) and the time per token (tpot) are held against, as configured.",
    ["measure", "request_class"],
)
LOOP_LAG = Histogram(
    "weir_event_loop_lag_seconds",
    "How late the event loop comes to what is due, looked at four times a second.",
    buckets=LAG_S,
)
JOURNAL_COMMIT = Histogram(
    "weir_journal_commit_seconds",
    "Time to write and sync what waits for the journal: each request waits for two of these.",
    buckets=COMMIT_S,
)
JOURNAL_BYTES_MAX = Gauge(
    "weir_journal_bytes_max", "Disk space that the journal may take before admissions are refused."
)
SHIPPER_BATCH = Histogram(
    "weir_shipper_batch_seconds",
    "Time of one transaction that brings usage records to Postgres.",
    buckets=BATCH_S,
)
SHIPPED = Counter("weir_shipped_records_total", "Usage records that Postgres took.")
DIRECTORY_AGE = Gauge(
    "weir_directory_age_seconds", "Since tenants, keys and workers were last read from Postgres."
)
REVOCATIONS_AGE = Gauge(
    "weir_revocations_age_seconds", "Since revocations were last seen, in Postgres or in Redis."
)
STORE_ROUND_TRIP = Histogram(
    "weir_store_round_trip_seconds",
    "Time of the regular pings of the store of leases, which run a script that writes.",
    buckets=COMMIT_S,
)


async def watch_loop_lag() -> None:
    """Measure how late the event loop is, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + _TICK_S
        await asyncio.sleep(_TICK_S)
        LOOP_LAG.observe(max(0.0, loop.time() - due_s))

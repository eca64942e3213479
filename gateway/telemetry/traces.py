"""Prometheus metrics of traces: what was kept, and what became of its spans."""

from prometheus_client import Counter

KEPT = Counter(
    "weir_traces_kept_total",
    "Traces that were kept: drawn by lot (`ratio`), or since the request `failed`, `fell_back` to "
    "a hosted provider, was `retried` or `slow`.",
    ["reason"],
)
NOT_KEPT = Counter(
    "weir_traces_not_kept_total",
    "Traces that would have been kept for this reason, beyond as many a second as may be.",
    ["reason"],
)
SPANS = Counter(
    "weir_trace_spans_total",
    "Spans: `exported`; `failed` where the collector did not take them; `dropped` where too many "
    "waited for it.",
    ["result"],
)
# There from the start, so that an increase sees the first one.
for _reason in ("ratio", "failed", "fell_back", "retried", "slow"):
    KEPT.labels(_reason)
    NOT_KEPT.labels(_reason)
for _result in ("exported", "failed", "dropped"):
    SPANS.labels(_result)

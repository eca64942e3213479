"""Prometheus metrics, with labels of bounded number: no tenant, no key, no request id."""

from prometheus_client import Counter, Gauge, Histogram

from billing.domain.usage_record import UsageRecord

_LATENCY_S = (
    0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4,
)  # fmt: skip
_TPOT_S = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)

ENDED = Counter(
    "weir_requests_ended_total",
    "Admitted requests that ended.",
    ["model", "request_class", "outcome"],
)
REFUSALS = Counter("weir_refusals_total", "Requests refused by a tenant's own limit.", ["kind"])
ERRORS = Counter("weir_errors_total", "Answers that are errors.", ["code"])
TOKENS = Counter("weir_tokens_total", "Tokens of ended requests.", ["model", "kind"])
TTFT = Histogram(
    "weir_time_to_first_token_seconds", "Arrival to first content token.",
    ["model", "request_class"], buckets=_LATENCY_S,
)  # fmt: skip
TPOT = Histogram(
    "weir_time_per_output_token_seconds", "Mean time per output token after the first.",
    ["model", "request_class"], buckets=_TPOT_S,
)  # fmt: skip
LIVE = Gauge("weir_live_requests", "Admitted requests that have not ended.")
LEASES_RETAKEN = Counter(
    "weir_leases_retaken_total", "Leases held again after they had lapsed or were lost."
)
UNPRICED = Counter(
    "weir_unpriced_requests_total",
    "Billable requests that had no price: they are shown, and hold up the invoice.",
    ["model", "provider"],
)
USAGE_FLAGS = Counter("weir_usage_flags_total", "Anomalies met in engines' usage.", ["flag"])
DEGRADED = Gauge("weir_degraded", "1 while a part is degraded.", ["part"])
JOURNAL_FAILING = Gauge("weir_journal_failing", "1 while the journal cannot be written.")
JOURNAL_BYTES = Gauge("weir_journal_bytes", "Disk space that the journal's segments take.")
METERING_LAG = Gauge("metering_lag_seconds", "Age of the oldest record that Postgres lacks.")
METERING_LAG_OF_ALL = Gauge(
    "weir_metering_lag_of_all_seconds",
    "How long ago the oldest end may have been that Postgres lacks, of any gateway that is known, "
    "those that are gone included; NaN where it is not known. Not to be added up.",
)
UNSHIPPED = Gauge("weir_unshipped_records", "Journal records that Postgres lacks.")
SECOND_COPIES = Gauge(
    "weir_second_copies", "Requests that Postgres lacks and whose copy is in Redis."
)
DEAD_LETTERS = Gauge(
    "weir_dead_letters",
    "Usage records that Postgres refused and nobody has resolved: of all gateways, not to be added "
    "up.",
)
STRAY_ROWS = Gauge(
    "weir_stray_usage_rows",
    "Usage rows whose month had no partition, up to 10,000: of all gateways, not to be added up.",
)
MISSING = Gauge(
    "weir_journal_missing_records",
    "Journal records that this gateway's disk has lost, as found since it began.",
)
UNCOPIED = Gauge(
    "weir_uncopied_records",
    "Copies since the start that Redis did not take at once, or had no room for.",
)
ENGINE_SAMPLES = Counter(
    "weir_engine_samples_total",
    "Readings of engines' own counters: stored, unread, or late, when another gateway had begun.",
    ["outcome"],
)
GATEWAYS_GONE = Gauge(
    "weir_gateways_gone",
    "Gateways that are gone and of which something is expected: as each sees it, not to be added "
    "up.",
)
PROVISIONAL = Counter(
    "weir_provisional_rows_total", "Rows written in the place of gateways that are gone."
)
RECONCILE_FINDINGS = Gauge(
    "weir_reconcile_findings",
    "What reconciliation found in its latest runs, of any gateway, by check (REC-1 to REC-7).",
    ["check"],
)
UNSETTLED = Gauge("weir_unsettled_leases", "Settlements that Redis has not taken yet.")
HOSTED_CIRCUIT = Gauge("weir_hosted_circuit", "0 closed, 1 half-open, 2 open.", ["provider"])
HOSTED_ATTEMPTS = Counter(
    "weir_hosted_attempts_total", "Streams opened at a hosted provider.", ["provider", "outcome"]
)
WORKER_HEALTHY = Gauge("weir_worker_healthy", "1 while a worker is healthy.", ["worker"])


def observe_ended(record: UsageRecord) -> None:
    """Count an ended request."""
    labels = {"model": record.model, "request_class": record.request_class}
    ENDED.labels(**labels, outcome=record.outcome.value).inc()
    TOKENS.labels(model=record.model, kind="prompt").inc(record.prompt_tokens)
    TOKENS.labels(model=record.model, kind="cached_prompt").inc(record.cached_prompt_tokens)
    TOKENS.labels(model=record.model, kind="output").inc(record.output_tokens)
    if record.ttft_ms is not None:
        TTFT.labels(**labels).observe(record.ttft_ms / 1000)
    if record.tpot_us is not None:
        TPOT.labels(**labels).observe(record.tpot_us / 1_000_000)
    if record.cost_pico is None:
        UNPRICED.labels(model=record.model, provider=record.provider).inc()
    for flag in record.usage_flags:
        USAGE_FLAGS.labels(flag=flag).inc()

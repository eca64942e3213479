"""Prometheus metrics, with labels of bounded number: no tenant, no key, no request id."""

from prometheus_client import Counter, Gauge, Histogram

from gateway.telemetry.buckets import DURATION_S, FIRST_TOKEN_S, GAP_S, TOKEN_S
from gateway.telemetry.buckets import TOKENS as TOKEN_BOUNDS

_OF_A_CLASS = ["model", "request_class"]

ENDED = Counter(
    "weir_requests_ended_total",
    "INV-1: admitted requests that ended.",
    ["model", "request_class", "outcome"],
)
REFUSALS = Counter("weir_refusals_total", "Requests refused by a tenant's own limit.", ["kind"])
ERRORS = Counter(
    "weir_errors_total",
    "Answers that are errors, by code and by where: v1, admin, billing, console, other.",
    ["code", "surface"],
)
for _code in (
    "internal_error", "worker_failed", "worker_timeout", "no_worker", "no_capacity",
    "admission_unavailable", "metering_unavailable",
):  # fmt: skip
    # Ours, and rare: there from the start, so that a rate sees the first one.
    ERRORS.labels(_code, "v1")
for _surface in ("v1", "admin", "billing", "console", "other"):
    for _code in ("internal_error", "store_unavailable"):
        ERRORS.labels(_code, _surface)
TOKENS = Counter("weir_tokens_total", "Tokens of ended requests.", ["model", "kind"])
TTFT = Histogram(
    "weir_time_to_first_token_seconds", "Arrival to first content token.",
    _OF_A_CLASS, buckets=FIRST_TOKEN_S,
)  # fmt: skip
TPOT = Histogram(
    "weir_time_per_output_token_seconds", "Mean time per output token after the first.",
    _OF_A_CLASS, buckets=TOKEN_S,
)  # fmt: skip
GAP = Histogram(
    "weir_longest_token_gap_seconds", "Longest gap between two pieces of a request's answer.",
    _OF_A_CLASS, buckets=GAP_S,
)  # fmt: skip
DURATION = Histogram(
    "weir_request_duration_seconds", "Arrival to end of admitted requests, however they ended.",
    _OF_A_CLASS, buckets=DURATION_S,
)  # fmt: skip
PROMPT_TOKENS = Histogram(
    "weir_prompt_tokens", "Prompt tokens of an ended request.", _OF_A_CLASS, buckets=TOKEN_BOUNDS
)
OUTPUT_TOKENS = Histogram(
    "weir_output_tokens", "Output tokens of an ended request.", _OF_A_CLASS, buckets=TOKEN_BOUNDS
)
LIVE = Gauge("weir_live_requests", "INV-1: admitted requests that have not ended.")
LEASES_RETAKEN = Counter(
    "weir_leases_retaken_total", "Leases held again after they had lapsed or were lost."
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
    "INV-5: journal records that this gateway's disk has lost, as found since it began.",
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
    "INV-5, INV-6, INV-7: what reconciliation found in its latest runs, of any gateway, by check "
    "(REC-1 to REC-7).",
    ["check"],
)
UNSETTLED = Gauge("weir_unsettled_leases", "Settlements that Redis has not taken yet.")
HOSTED_CIRCUIT = Gauge("weir_hosted_circuit", "0 closed, 1 half-open, 2 open.", ["provider"])
HOSTED_ATTEMPTS = Counter(
    "weir_hosted_attempts_total", "Streams opened at a hosted provider.", ["provider", "outcome"]
)

"""Faults: what is broken, whom it hits, and whether it heals."""

from panel import Dashboard, Panel, Query
from panels_capacity import SIMULATED

FAULTS = Dashboard(
    "weir-faults",
    "faults",
    "What is broken, whom it hits, and whether it heals.",
    (
        SIMULATED,
        Panel(
            "How many parts are degraded now?",
            (Query("sum(max by (part) (weir_degraded))", "words of /readyz"),),
            "none",
            "Which ones is below; what each means is in docs/operations/metrics.md.",
            kind="stat",
            width=6,
            height=4,
            warn_above=1,
        ),
        Panel(
            "What share of requests fails?",
            (
                Query(
                    'sum(increase(weir_requests_ended_total{outcome=~"worker_failed|timed_out|'
                    'gateway_lost"}[$__range]))'
                    " / sum(increase(weir_requests_ended_total[$__range]))",
                    "failed",
                ),
            ),
            "percentunit",
            "By a worker that failed, a time-out, or a gateway that was lost; in the time shown.",
            kind="stat",
            width=6,
            height=4,
            warn_above=0.01,
        ),
        Panel(
            "How many alerts are firing?",
            (Query('count(ALERTS{alertstate="firing",severity!="none"}) or vector(0)', "alerts"),),
            "none",
            "Prometheus' own page names them.",
            kind="stat",
            width=6,
            height=4,
            warn_above=1,
        ),
        Panel(
            "What is degraded?",
            (Query("max by (part) (weir_degraded)", "{{part}}"),),
            "none",
            "The words of /readyz. redis, directory, journal and clock stop new requests.",
            most=1,
        ),
        Panel(
            "Which workers are healthy?",
            (
                Query(
                    "weir:worker_healthy * on (worker) group_left (note) weir:worker",
                    "{{worker}}{{note}}",
                ),
            ),
            "none",
            "1 while it is.",
            most=1,
        ),
        Panel(
            "How do requests end?",
            (
                Query(
                    "sum by (outcome) (rate(weir_requests_ended_total[$__rate_interval]))",
                    "{{outcome}}",
                ),
            ),
            "none",
            "Admitted ones, a second.",
            stacked=True,
        ),
        Panel(
            "Which errors are answered?",
            (Query("sum by (code) (rate(weir_errors_total[$__rate_interval]))", "{{code}}"),),
            "none",
            "A second, by code: also of requests that were never admitted.",
            stacked=True,
        ),
        Panel(
            "What went to hosted providers, and how did it end?",
            (
                Query(
                    "sum by (provider, outcome)"
                    " (rate(weir_hosted_attempts_total[$__rate_interval]))",
                    "{{provider}}: {{outcome}}",
                ),
            ),
            "none",
            "Streams opened there, a second.",
            stacked=True,
        ),
        Panel(
            "Are hosted providers used?",
            (Query("max by (provider) (weir_hosted_circuit)", "{{provider}}"),),
            "none",
            "0: yes. 1: one request tries. 2: not now, it failed too often.",
            most=2,
            warn_above=2,
        ),
        Panel(
            "Is Redis there?",
            (Query("max by (instance) (weir_store_state)", "{{instance}}"),),
            "none",
            "0: open, 1: suspect, 2: returning, 3: away.",
            most=3,
            warn_above=2,
        ),
        Panel(
            "How old is what the gateways know?",
            (
                Query(
                    "max by (instance) (weir_directory_age_seconds)", "tenants, keys: {{instance}}"
                ),
                Query(
                    "max by (instance) (weir_revocations_age_seconds)", "revocations: {{instance}}"
                ),
            ),
            "s",
            "Looked up four times a second. After an hour without Postgres nothing is admitted.",
        ),
        Panel(
            "Do limits hold? (INV-2)",
            (
                Query("max(weir_excess_sequences)", "sequences over a limit now"),
                Query("sum(weir_withheld_settlements)", "settlements that wait for Redis"),
                Query("sum(weir_unsettled_leases)", "leases not settled yet"),
                Query(
                    "sum(increase(weir_leases_recreated_total[$__rate_interval]))",
                    "leases held again after a loss",
                ),
            ),
            "none",
            "All of it is 0 but for some seconds after Redis was away.",
        ),
        Panel(
            "Is every record safe?",
            (
                Query("max by (instance) (weir_journal_failing)", "journal fails on {{instance}}"),
                Query("sum(weir_journal_missing_records)", "records that a disk has lost"),
                Query("max(weir_dead_letters)", "dead letters"),
                Query("max(weir_gateways_gone)", "gateways gone of which something is expected"),
                Query("sum(weir_uncopied_records)", "records that had no second copy at once"),
            ),
            "none",
            "All of it is 0 where all is well.",
        ),
        Panel(
            "What did reconciliation find?",
            (Query("max by (check) (weir_reconcile_findings)", "{{check}}"),),
            "none",
            "In its latest runs. weir reconcile says which requests, and how large.",
            kind="bars",
        ),
        Panel(
            "Does what watches work itself?",
            (
                Query("sum by (job) (up)", "answers: {{job}}"),
                Query(
                    "sum by (result) (rate(weir_otlp_pushes_total[$__rate_interval]))",
                    "OTLP {{result}}",
                ),
            ),
            "none",
            "Targets that Prometheus reaches.",
        ),
    ),
)

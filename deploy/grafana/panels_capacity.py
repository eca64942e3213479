"""Capacity: what there is, what it does, and what is left."""

from panel import Dashboard, Panel, Query

_NOTED = "* on (worker) group_left (note) weir:worker"
"""Each figure of a worker says whether it is a simulator's."""
_THERE = "unless on (worker) (weir:worker_healthy == 0)"
"""What an engine said last is no answer while it is away."""

SIMULATED = Panel(
    "How many workers are simulated?",
    (Query('count(weir:worker{simulated="true"}) or vector(0)', "simulated workers"),),
    "none",
    "Above 0, figures on this page are a simulator's: its series say (simulated).",
    kind="stat",
    width=6,
    height=4,
    warn_above=1,
)

CAPACITY = Dashboard(
    "weir-capacity",
    "capacity",
    "What there is, what it does now, and what is left.",
    (
        SIMULATED,
        Panel(
            "How many workers are healthy?",
            (
                Query("sum(weir:worker_healthy)", "healthy"),
                Query("count(weir:worker)", "registered"),
            ),
            "none",
            "A worker is unhealthy from the first probe that fails on.",
            kind="stat",
            width=6,
            height=4,
        ),
        Panel(
            "How many gateways answer?",
            (Query('sum(up{job="weir-gateway"})', "answering"),),
            "none",
            "Of those that Prometheus is told of.",
            kind="stat",
            width=6,
            height=4,
            warn_below=1,
        ),
        Panel(
            "How full is the fleet?",
            (
                Query(
                    "sum(max by (worker) (weir_place_sequences))"
                    ' / sum(max by (worker) (weir_ceiling{kind="all"}))',
                    "of what may run",
                ),
            ),
            "percentunit",
            "Sequences that have a place, of those that may have one.",
            kind="stat",
            width=6,
            height=4,
            warn_above=0.9,
        ),
        Panel(
            "How many sequences have a place on each worker?",
            (
                Query(
                    f"max by (worker) (weir_place_sequences) {_NOTED}",
                    "{{worker}}{{note}}",
                ),
                Query(
                    f'max by (worker) (weir_ceiling{{kind="all"}}) {_NOTED}',
                    "ceiling of {{worker}}{{note}}",
                ),
            ),
            "none",
            "At its ceiling a worker gets nothing more: requests wait. Above it stand only those"
            " whose own worker died before their first token.",
        ),
        Panel(
            "How full is each worker's KV cache?",
            (
                Query(
                    "(max by (worker) (weir_worker_kv_used_tokens)"
                    f" / max by (worker) (weir_worker_kv_total_tokens)) {_NOTED} {_THERE}",
                    "{{worker}}{{note}}",
                ),
            ),
            "percentunit",
            "As the engine says. What is cached of earlier prompts counts as free.",
            most=1,
            warn_above=0.9,
        ),
        Panel(
            "What does each engine run, and hold waiting?",
            (
                Query(
                    f"max by (worker) (weir_worker_running_requests) {_NOTED} {_THERE}",
                    "runs on {{worker}}{{note}}",
                ),
                Query(
                    f"max by (worker) (weir_worker_waiting_requests) {_NOTED} {_THERE}",
                    "waits in {{worker}}{{note}}",
                ),
            ),
            "none",
            "What waits in an engine is out of the queue's hands: it should be next to nothing.",
        ),
        Panel(
            "Up to where is batch sent to a worker?",
            (
                Query(
                    f"max by (worker) (weir_queue_ceiling_batch_sequences) {_NOTED}",
                    "{{worker}}{{note}}",
                ),
            ),
            "none",
            "Learned, so that interactive requests keep 40 ms a token.",
        ),
        Panel(
            "How many tokens a second are generated?",
            (
                Query(
                    'sum by (model) (rate(weir_tokens_total{kind="output"}[$__rate_interval]))',
                    "{{model}}",
                ),
            ),
            "none",
            "Tokens of ended requests, in the second in which they ended.",
        ),
        Panel(
            "How many prompt tokens a second, and how many of them cached?",
            (
                Query('sum(rate(weir_tokens_total{kind="prompt"}[$__rate_interval]))', "prompt"),
                Query(
                    'sum(rate(weir_tokens_total{kind="cached_prompt"}[$__rate_interval]))',
                    "of these cached",
                ),
            ),
            "none",
            "Cached tokens cost an engine next to nothing.",
        ),
        Panel(
            "How many requests end a second?",
            (
                Query(
                    "sum by (request_class) (rate(weir_requests_ended_total[$__rate_interval]))",
                    "{{request_class}}",
                ),
                Query("sum(weir_live_requests)", "running now"),
            ),
            "none",
            "And how many run, on all gateways.",
        ),
        Panel(
            "How busy are the gateways themselves?",
            (
                Query(
                    'sum by (instance) (rate(process_cpu_seconds_total{job="weir-gateway"}'
                    "[$__rate_interval]))",
                    "cores of {{instance}}",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (le)"
                    " (rate(weir_event_loop_lag_seconds_bucket[$__rate_interval])))",
                    "p99 of lateness, seconds",
                ),
            ),
            "none",
            "One gateway has one core at most: near 1 it is time for another.",
            warn_above=0.9,
        ),
        Panel(
            "How much memory do the gateways take?",
            (
                Query(
                    'process_resident_memory_bytes{job="weir-gateway"}',
                    "{{instance}}",
                ),
            ),
            "bytes",
            "Of 2 GiB each in the compose file.",
        ),
        Panel(
            "How many file descriptors do the gateways have left?",
            (
                Query(
                    '1 - process_open_fds{job="weir-gateway"}'
                    ' / process_max_fds{job="weir-gateway"}',
                    "{{instance}}",
                ),
            ),
            "percentunit",
            "Each stream takes two.",
            most=1,
            warn_below=0.2,
        ),
    ),
)

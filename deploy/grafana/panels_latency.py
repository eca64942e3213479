"""Latency: how long it takes, and where the time goes."""

from panel import Dashboard, Panel, Query
from panels_capacity import SIMULATED


def _quantiles(metric: str, by: str, legend: str, *shares: float) -> tuple[Query, ...]:
    """Percentiles of a histogram by one label."""
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by (le, {by})"
            f" (rate({metric}_bucket[$__rate_interval])))",
            f"p{share * 100:.0f} {legend}",
        )
        for share in shares
    )


def _within(title: str, metric: str, request_class: str, bound: str) -> Panel:
    chosen = f'request_class="{request_class}"'
    return Panel(
        title,
        (
            Query(
                f'sum(increase({metric}_bucket{{{chosen},le="{bound}"}}[$__range]))'
                f" / sum(increase({metric}_count{{{chosen}}}[$__range]))",
                "within the target",
            ),
        ),
        "percentunit",
        "Of all requests in the time shown. 95 % is the aim.",
        kind="stat",
        width=6,
        height=4,
        warn_below=0.95,
    )


def _first(title: str, request_class: str, target_s: float) -> Panel:
    chosen = f'request_class="{request_class}"'
    return Panel(
        title,
        tuple(
            Query(
                f"histogram_quantile({share}, sum by (le)"
                f" (rate({_TTFT}_bucket{{{chosen}}}[$__rate_interval])))",
                f"p{share * 100:.0f}",
            )
            for share in (0.5, 0.95, 0.99)
        ),
        "s",
        "From the request's arrival, the wait for a place included. The line is the target.",
        warn_above=target_s,
    )


_TTFT = "weir_time_to_first_token_seconds"
_TPOT = "weir_time_per_output_token_seconds"
_CLASS = "request_class"

LATENCY = Dashboard(
    "weir-latency",
    "latency",
    "How long it takes until the first token and between tokens, and where the time goes.",
    (
        SIMULATED,
        _within("First token within 800 ms? (interactive)", _TTFT, "interactive", "0.8"),
        _within("40 ms a token kept? (interactive)", _TPOT, "interactive", "0.04"),
        _within("First token within a minute? (batch)", _TTFT, "batch", "60.0"),
        _first("How long until the first token? (interactive)", "interactive", 0.8),
        _first("How long until the first token? (batch)", "batch", 60),
        Panel(
            "How long for each token after it?",
            _quantiles(_TPOT, _CLASS, "{{request_class}}", 0.5, 0.95),
            "s",
            "The mean of an answer's tokens after the first. The line is interactive's target.",
            warn_above=0.04,
        ),
        Panel(
            "How long does an answer stand still at most?",
            _quantiles("weir_longest_token_gap_seconds", _CLASS, "{{request_class}}", 0.5, 0.95),
            "s",
            "The longest gap between two of its tokens.",
        ),
        Panel(
            "How long does a request take in all?",
            _quantiles("weir_request_duration_seconds", _CLASS, "{{request_class}}", 0.5, 0.95),
            "s",
            "From its arrival to its end.",
        ),
        Panel(
            "How long did requests wait for a place?",
            _quantiles("weir_queue_wait_seconds", _CLASS, "{{request_class}}", 0.5, 0.95),
            "s",
            "Of the time until the first token this much was the queue's.",
        ),
        Panel(
            "How long do the gateway's own steps take?",
            (
                *_quantiles("weir_admission_decision_seconds", "mode", "to admit, {{mode}}", 0.99),
                Query(
                    "histogram_quantile(0.99, sum by (le)"
                    " (rate(weir_store_round_trip_seconds_bucket[$__rate_interval])))",
                    "p99 Redis, there and back",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (le)"
                    " (rate(weir_journal_commit_seconds_bucket[$__rate_interval])))",
                    "p99 journal on the disk",
                ),
            ),
            "s",
            "An admission waits for one of each. What grows here is the store's or the disk's.",
        ),
        Panel(
            "How long are prompts?",
            _quantiles("weir_prompt_tokens", _CLASS, "{{request_class}}", 0.5, 0.95),
            "none",
            "In tokens. Long prompts make first tokens late.",
        ),
        Panel(
            "How long are answers?",
            _quantiles("weir_output_tokens", _CLASS, "{{request_class}}", 0.5, 0.95),
            "none",
            "In tokens.",
        ),
    ),
)

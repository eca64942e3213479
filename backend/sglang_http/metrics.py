"""`/metrics` in Prometheus text, under SGLang's names (prefix `sglang:`, with the colon)."""

from backend.sglang_http.engine import Engine


def render(engine: Engine) -> bytes:
    """Gauges and counters that the engine itself knows; what it does not know is absent."""
    info, load, totals = engine.info, engine.load(), engine.ledger.totals
    labels = f'engine_type="unified",model_name="{_escape(info.model)}",weir_engine="{info.name}"'
    used = load.used_tokens
    size = info.max_total_num_tokens
    gauges: list[tuple[str, str, float | None]] = [
        ("num_running_reqs", "The number of running requests.", load.running),
        ("num_queue_reqs", "The number of requests in the waiting queue.", load.waiting),
        ("num_used_tokens", "The number of used tokens.", used),
        ("token_usage", "The token usage.", used / size),
        ("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", size),
        ("kv_used_tokens", "Number of actively used token slots in the KV cache pool.", used),
        ("kv_evictable_tokens", "Number of evictable token slots.", load.cached_tokens),
        ("gen_throughput", "The generation throughput (token/s).", load.gen_throughput),
        ("context_len", "Maximum context length.", info.context_tokens),
    ]
    counters = [
        ("prompt_tokens_total", "Number of prefill tokens processed.", totals.prompt_tokens),
        (
            "generation_tokens_total",
            "Number of generation tokens processed.",
            totals.completion_tokens,
        ),
        ("cached_tokens_total", "Number of cached prompt tokens.", totals.cached_tokens),
        ("num_requests_total", "Number of requests processed.", totals.requests),
        ("num_aborted_requests_total", "Number of requests aborted.", totals.aborted),
    ]
    lines: list[str] = []
    for name, text, gauge in gauges:
        if gauge is not None:
            lines += _family(name, "gauge", text, labels, gauge)
    for name, text, count in counters:
        lines += _family(name, "counter", text, labels, count)
    return ("\n".join(lines) + "\n").encode()


def _family(name: str, kind: str, text: str, labels: str, value: float) -> list[str]:
    full = f"sglang:{name}"
    return [
        f"# HELP {full} {text}",
        f"# TYPE {full} {kind}",
        f"{full}{{{labels}}} {float(value)}",
    ]


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

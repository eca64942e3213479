"""`/metrics` in Prometheus text, under SGLang's names (prefix `sglang:`, with the colon)."""

import time
from collections import Counter
from collections.abc import Iterator

from litestar.types import Message, Scope
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from backend.sglang_http.engine import Engine, Load, Scheduled
from backend.sglang_http.latencies import Histogram

PATHS = frozenset(
    {
        *("/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/loads", "/v1/tokenize"),
        *("/generate", "/ready", "/health", "/health_generate", "/server_info", "/model_info"),
        *("/get_server_info", "/get_model_info", "/metrics", "/abort_request", "/flush_cache"),
        *("/weir/ledger", "/weir/faults"),
    }
)
"""Paths that are counted by name; all others are one."""


class Metrics(Collector):
    """What an engine and its HTTP side have counted. What is not known is absent."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._began_s = time.time()
        self._responses: Counter[tuple[str, str, str]] = Counter()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        info = engine.info
        self._labels = {
            "engine_type": "unified",
            "model_name": info.model,
            "weir_engine": info.name,
        }

    def render(self) -> bytes:
        """The text."""
        return generate_latest(self._registry)

    async def count(self, message: Message, scope: Scope) -> None:
        """Before an ASGI message goes out: count the answer that it begins."""
        if message["type"] == "http.response.start":
            path = scope["path"] if scope["path"] in PATHS else "other"
            method = str(scope.get("method", ""))
            self._responses[path, method, str(message["status"])] += 1

    def describe(self) -> list[Metric]:
        """Nothing in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families as they are now."""
        engine = self._engine
        load = engine.load()
        yield from self._gauges(load)
        if load.scheduled is not None:
            yield from self._scheduled(load.scheduled)
        yield from self._counters()
        yield from self._histograms()
        yield self._answered()
        text = "Start time of the process since unix epoch in seconds."
        yield GaugeMetricFamily("process_start_time_seconds", text, self._began_s)

    def _gauges(self, load: Load) -> Iterator[Metric]:
        info = self._engine.info
        used, size = load.used_tokens, info.max_total_num_tokens
        for name, text, value in (
            ("num_running_reqs", "The number of running requests.", load.running),
            ("num_queue_reqs", "The number of requests in the waiting queue.", load.waiting),
            ("num_used_tokens", "The number of used tokens.", used),
            ("token_usage", "The token usage.", used / size),
            ("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", size),
            ("kv_used_tokens", "Number of actively used token slots in the KV cache pool.", used),
            ("kv_evictable_tokens", "Number of evictable token slots.", load.cached_tokens),
            ("gen_throughput", "The generation throughput (token/s).", load.gen_throughput),
            ("context_len", "Maximum context length.", info.context_tokens),
        ):
            if value is not None:
                yield self._gauge(f"sglang:{name}", text, value)

    def _scheduled(self, scheduled: Scheduled) -> Iterator[Metric]:
        for name, text, value in (
            ("cache_hit_rate", "The prefix cache hit rate.", scheduled.cache_hit_rate),
            ("num_retracted_reqs", "The number of retracted requests.", scheduled.retracted),
            ("kv_available_tokens", "Number of free token slots.", scheduled.available_tokens),
        ):
            yield self._gauge(f"sglang:{name}", text, value)
        for name, value in scheduled.gauges.items():
            yield self._gauge(f"sglang:{name}", "As SGLang's.", value)
        for name, value in scheduled.counters.items():
            yield self._counter(f"sglang:{name}", "As SGLang's.", value)
        text = "By how many real milliseconds 95 % of the last seconds' steps were late at most."
        yield self._gauge("weir_simulated_step_lag_ms", text, scheduled.lag_ms)

    def _counters(self) -> Iterator[Metric]:
        ledger = self._engine.ledger
        for name, text, field in (
            ("prompt_tokens", "Number of prefill tokens processed.", "prompt_tokens"),
            ("generation_tokens", "Number of generation tokens processed.", "completion_tokens"),
            ("num_requests", "Number of requests processed.", "requests"),
        ):
            family = CounterMetricFamily(
                f"sglang:{name}", text, labels=[*self._labels, "is_streaming"]
            )
            for streaming, totals in (("false", ledger.whole), ("true", ledger.streamed)):
                family.add_metric([*self._labels.values(), streaming], getattr(totals, field))
            yield family
        yield self._counter(
            "sglang:num_aborted_requests", "Number of requests aborted.", ledger.aborts
        )
        text = "Number of cached prompt tokens by source (device/host/storage)."
        cached = CounterMetricFamily(
            "sglang:cached_tokens", text, labels=[*self._labels, "cache_source"]
        )
        cached.add_metric([*self._labels.values(), "device"], ledger.totals.cached_tokens)
        yield cached

    def _histograms(self) -> Iterator[Metric]:
        latencies = self._engine.latencies
        histograms: tuple[tuple[str, str, Histogram], ...] = (
            ("time_to_first_token", "time to first token", latencies.first_token),
            ("inter_token_latency", "inter-token latency", latencies.inter_token),
            ("e2e_request_latency", "End-to-end request latency", latencies.end_to_end),
            ("queue_time", "queueing time", latencies.queue),
        )
        for name, text, histogram in histograms:
            if histogram.count:
                family = HistogramMetricFamily(
                    f"sglang:{name}_seconds",
                    f"Histogram of {text} in seconds of the engine's clock.",
                    labels=list(self._labels),
                )
                buckets = histogram.buckets()
                family.add_metric(list(self._labels.values()), buckets, histogram.sum_s)
                yield family

    def _answered(self) -> Metric:
        family = CounterMetricFamily(
            "sglang:http_responses",
            "Total number of HTTP responses by endpoint and status code",
            labels=[*self._labels, "endpoint", "method", "status_code"],
        )
        for labels, count in self._responses.items():
            family.add_metric([*self._labels.values(), *labels], count)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

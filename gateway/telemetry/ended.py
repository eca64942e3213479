"""Counts an ended request. Here metrics lie on the way of requests: the series of a model and class
are looked up once and kept, since looking one up costs more than counting with it."""

from dataclasses import dataclass, field

from prometheus_client import Counter, Histogram

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.telemetry import metrics
from gateway.telemetry.money import observe_cost


@dataclass
class _Series:
    """The series of one model and class."""

    ttft: Histogram
    tpot: Histogram
    gap: Histogram
    duration: Histogram
    prompt: Histogram
    output: Histogram
    tokens: dict[str, Counter]
    ended: dict[Outcome, Counter] = field(default_factory=dict)


_kept: dict[tuple[str, str], _Series] = {}


def forget() -> None:
    """Look all series up anew: some were removed."""
    _kept.clear()


def observe_ended(record: UsageRecord) -> None:
    """Count an ended request, its tokens, its times and what it costs."""
    key = (record.model, record.request_class)
    series = _kept.get(key)
    if series is None:
        series = _kept[key] = _look_up(*key)
    ended = series.ended.get(record.outcome)
    if ended is None:
        ended = metrics.ENDED.labels(*key, record.outcome.value)
        series.ended[record.outcome] = ended
    ended.inc()
    series.tokens["prompt"].inc(record.prompt_tokens)
    series.tokens["cached_prompt"].inc(record.cached_prompt_tokens)
    series.tokens["output"].inc(record.output_tokens)
    series.prompt.observe(record.prompt_tokens)
    series.output.observe(record.output_tokens)
    series.duration.observe((record.ended_at_ms - record.admitted_at_ms) / 1000)
    if record.ttft_ms is not None:
        series.ttft.observe(record.ttft_ms / 1000)
    if record.tpot_us is not None:
        series.tpot.observe(record.tpot_us / 1_000_000)
    if record.itl_max_us is not None:
        series.gap.observe(record.itl_max_us / 1_000_000)
    for flag in record.usage_flags:
        metrics.USAGE_FLAGS.labels(flag).inc()
    observe_cost(record)


def _look_up(model: str, request_class: str) -> _Series:
    of = (model, request_class)
    return _Series(
        ttft=metrics.TTFT.labels(*of),
        tpot=metrics.TPOT.labels(*of),
        gap=metrics.GAP.labels(*of),
        duration=metrics.DURATION.labels(*of),
        prompt=metrics.PROMPT_TOKENS.labels(*of),
        output=metrics.OUTPUT_TOKENS.labels(*of),
        tokens={
            kind: metrics.TOKENS.labels(model, kind)
            for kind in ("prompt", "cached_prompt", "output")
        },
    )

"""Label values that come and go: a worker, a provider or a model that is not registered any more
takes its series with it, so that their number is bounded by what is registered."""

from collections.abc import Collection, Mapping

from prometheus_client import Counter, Gauge, Histogram

from gateway.telemetry import ceilings, ended, metrics, money, pools, workers

Labelled = Counter | Gauge | Histogram

SET_ANEW = (*pools.ALL, *workers.ALL)
"""Cleared and set whenever they are read: nothing that is gone is in them."""
GOING: Mapping[str, tuple[Labelled, ...]] = {
    "model": (
        metrics.ENDED, metrics.TOKENS, metrics.TTFT, metrics.TPOT, metrics.GAP, metrics.DURATION,
        metrics.PROMPT_TOKENS, metrics.OUTPUT_TOKENS, money.UNPRICED,
    ),
    "provider": (
        metrics.HOSTED_CIRCUIT, metrics.HOSTED_ATTEMPTS, money.COST, money.LIST_COST,
        money.HOSTED_COST, money.UNPRICED,
    ),
    "worker": (
        # The store keeps the room of a worker that is gone for as long as nobody looks for places.
        pools.PLACE_SEQUENCES, pools.PLACE_TOKENS, pools.CEILING, ceilings.SEQUENCES,
        ceilings.BATCH,
    ),
}  # fmt: skip
"""The others that have such a label."""


def forget_gone(known: Mapping[str, Collection[str]]) -> None:
    """Remove the series of all that is not among what is known, by label."""
    is_changed = False
    for label, metrics_of_it in GOING.items():
        for metric in metrics_of_it:
            for value in _values(metric, label) - set(known[label]):
                metric.remove_by_labels({label: value})
                is_changed = True
    if is_changed:
        ended.forget()


def _values(metric: Labelled, label: str) -> set[str]:
    return {sample.labels[label] for family in metric.collect() for sample in family.samples}

"""The metrics that Prometheus scrapes, in OpenTelemetry's data model.

They are counted once, by prometheus_client, and read from its registry when they are sent: a
request pays for one count. Cumulative, each series from its own start. Names are Prometheus' own
without `_total`, which a collector's Prometheus exporter puts back: both ways lead to one name.
"""

import math
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_SCOPE = InstrumentationScope("gateway.telemetry")
_UNITS = {
    "_seconds": "s",
    "_bytes": "By",
    "_tokens": "{token}",
    "_requests": "{request}",
    "_sequences": "{sequence}",
    "_records": "{record}",
    "_rows": "{row}",
}
_STARTED_NS = time.time_ns()
"""Counters that do not say when they began did with the process."""
_UNKNOWN: Any = None
"""Of a histogram's least and most, which nobody keeps: the fields are optional."""
Labels = tuple[tuple[str, str], ...]


def metrics_data(families: Iterable[Family], resource: Resource, *, now_ns: int) -> MetricsData:
    """All of them as they are now. What is NaN is left out: it is not known."""
    found = (_metric(family, now_ns) for family in families)
    metrics = [metric for metric in found if metric is not None]
    scope = ScopeMetrics(scope=_SCOPE, metrics=metrics, schema_url="")
    of_resource = ResourceMetrics(resource=resource, scope_metrics=[scope], schema_url="")
    return MetricsData(resource_metrics=[of_resource])


def _metric(family: Family, now_ns: int) -> Metric | None:
    data: Sum | Gauge | Histogram
    if family.type == "histogram":
        data = Histogram(_histogram_points(family, now_ns), _CUMULATIVE)
    elif family.type == "counter":
        points = _counter_points(family, now_ns)
        data = Sum(points, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(
            [
                NumberDataPoint(dict(sample.labels), 0, now_ns, sample.value)
                for sample in family.samples
                if math.isfinite(sample.value)
            ]
        )
    if not data.data_points:
        return None
    return Metric(family.name, family.documentation, _unit(family.name), data)


def _counter_points(family: Family, now_ns: int) -> list[NumberDataPoint]:
    started = _started(family)
    return [
        NumberDataPoint(
            dict(sample.labels), started.get(_key(sample), _STARTED_NS), now_ns, sample.value
        )
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]


def _histogram_points(family: Family, now_ns: int) -> list[HistogramDataPoint]:
    started = _started(family)
    series: dict[Labels, dict[str, float]] = {}
    bounds: dict[Labels, list[tuple[float, int]]] = {}
    for sample in family.samples:
        if sample.name.endswith("_bucket"):
            bound = (float(sample.labels["le"]), int(sample.value))
            bounds.setdefault(_key(sample), []).append(bound)
        elif not sample.name.endswith("_created"):
            part = "sum" if sample.name.endswith("_sum") else "count"
            series.setdefault(_key(sample), {})[part] = sample.value
    return [
        HistogramDataPoint(
            attributes=dict(key),
            start_time_unix_nano=started.get(key, _STARTED_NS),
            time_unix_nano=now_ns,
            count=sorted_bounds[-1][1],
            sum=series[key]["sum"],
            bucket_counts=_each(sorted_bounds),
            explicit_bounds=[bound for bound, _ in sorted_bounds[:-1]],
            min=_UNKNOWN,
            max=_UNKNOWN,
        )
        for key, sorted_bounds in ((key, sorted(found)) for key, found in bounds.items())
    ]


def _each(cumulative: list[tuple[float, int]]) -> list[int]:
    """How many are in each bucket alone."""
    counts = [count for _, count in cumulative]
    return [counts[0], *(after - before for before, after in pairwise(counts))]


def _started(family: Family) -> dict[Labels, int]:
    return {
        _key(sample): int(sample.value * 1e9)
        for sample in family.samples
        if sample.name.endswith("_created")
    }


def _key(sample: Sample) -> Labels:
    return tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))


def _unit(name: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")

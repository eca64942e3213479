"""The registry as OTLP has it: what Prometheus would have scraped, number by number."""

import math
import time

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from gateway.telemetry import going, metrics
from gateway.telemetry.otlp_metrics import metrics_data

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def sent(registry: CollectorRegistry, now_ns: int = 1) -> dict[str, Metric]:
    """What goes over the wire, by name."""
    data = metrics_data(registry.collect(), Resource({"service.name": "x"}), now_ns=now_ns)
    (resource,) = encode_metrics(data).resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def test_a_counter_is_a_cumulative_sum_from_when_each_series_began() -> None:
    """One that is removed and comes again has begun again."""
    registry = CollectorRegistry()
    counter = Counter("weir_x_total", "Of what.", ["kind"], registry=registry)
    before_ns = time.time_ns()
    counter.labels("a").inc(3)
    metric = sent(registry, now_ns=7)["weir_x"]
    assert (metric.description, metric.unit) == ("Of what.", "")
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == CUMULATIVE
    (point,) = metric.sum.data_points
    assert (point.as_double, point.time_unix_nano) == (3, 7)
    assert {each.key: each.value.string_value for each in point.attributes} == {"kind": "a"}
    assert before_ns - 1_000_000 <= point.start_time_unix_nano <= time.time_ns()
    counter.remove("a")
    counter.labels("a").inc()
    (again,) = sent(registry)["weir_x"].sum.data_points
    assert again.as_double == 1
    assert again.start_time_unix_nano > point.start_time_unix_nano


def test_a_histogram_has_its_bounds_and_how_many_are_in_each() -> None:
    """Prometheus counts up from below, OTLP each bucket alone, the last what is over all bounds."""
    registry = CollectorRegistry()
    histogram = Histogram(
        "weir_x_seconds", "Of what.", ["kind"], buckets=(0.1, 0.8, 60.0), registry=registry
    )
    for kind, seen in (("a", (0.05, 0.8, 0.80001, 61.0)), ("b", (0.1,))):
        for value in seen:
            histogram.labels(kind).observe(value)
    metric = sent(registry)["weir_x_seconds"]
    assert metric.unit == "s"
    assert metric.histogram.aggregation_temporality == CUMULATIVE
    first, second = metric.histogram.data_points
    assert list(first.explicit_bounds) == [0.1, 0.8, 60.0]
    assert list(first.bucket_counts) == [1, 1, 1, 1]
    assert (first.count, round(first.sum, 5)) == (4, 62.65001)
    assert list(second.bucket_counts) == [1, 0, 0, 0]
    assert first.start_time_unix_nano > 0
    assert not first.HasField("min")
    assert not first.HasField("max")


def test_a_gauge_is_what_it_is_now_and_absent_where_that_is_not_known() -> None:
    """NaN is what Prometheus is shown; OTLP leaves it out."""
    registry = CollectorRegistry()
    gauge = Gauge("weir_x_bytes", "Of what.", ["kind"], registry=registry)
    gauge.labels("a").set(5)
    gauge.labels("b").set(math.nan)
    Gauge("weir_unknown", "Of what.", registry=registry).set(math.nan)
    found = sent(registry)
    assert found.keys() == {"weir_x_bytes"}
    (point,) = found["weir_x_bytes"].gauge.data_points
    assert (point.as_double, found["weir_x_bytes"].unit) == (5, "By")


def test_both_exports_say_the_same_of_all_there_is() -> None:
    """Every series of the registry, by its name and labels."""
    metrics.ENDED.labels("m", "interactive", "completed").inc()
    metrics.TTFT.labels("m", "interactive").observe(0.3)
    families = list(REGISTRY.collect())
    data = metrics_data(families, Resource({}), now_ns=1)
    scope = encode_metrics(data).resource_metrics[0].scope_metrics[0]
    otlp = {
        (metric.name, frozenset((each.key, each.value.string_value) for each in point.attributes))
        for metric in scope.metrics
        for point in getattr(metric, metric.WhichOneof("data")).data_points
    }
    prometheus = {
        (family.name, frozenset(item for item in sample.labels.items() if item[0] != "le"))
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created") and not math.isnan(sample.value)
    }
    assert otlp == prometheus
    going.forget_gone({"model": [], "provider": [], "worker": []})

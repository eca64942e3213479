"""`docs/operations/tracing.md` names what the code says in traces, and nothing else."""

import re
from dataclasses import fields
from pathlib import Path

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import (
    error_attributes,
    http_attributes,
    server_attributes,
    url_attributes,
)
from prometheus_client.metrics import MetricWrapperBase

from gateway.settings import Settings
from gateway.telemetry import traces
from gateway.telemetry.trace_names import SPANS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations" / "tracing.md").read_text()
SPAN = re.compile(r"^\| `([a-z ]+)` \| [^|]+ \| ((?:`[\w.]+` ?)+) \|$", re.MULTILINE)
METRIC = re.compile(r"^\| `(weir_\w+)` \| `(\w+)` \|", re.MULTILINE)
SETTING = re.compile(r"^\| `(WEIR_\w+)` \| `?(\w+)`? \|", re.MULTILINE)
CONVENTIONS = (
    error_attributes, gen_ai_attributes, http_attributes, server_attributes, url_attributes,
)  # fmt: skip


def test_its_spans_are_those_of_the_code() -> None:
    """All of them, each with all that it may say."""
    of_page = {
        name: frozenset(re.findall(r"`([\w.]+)`", said)) for name, said in SPAN.findall(PAGE)
    }
    assert of_page == SPANS


def test_what_is_not_ours_is_a_convention() -> None:
    """By its exact name, as OpenTelemetry's own package has it; and none that it has given up."""
    known = {
        value
        for module in CONVENTIONS
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    said = {name for names in SPANS.values() for name in names}
    assert {name for name in said if not name.startswith("weir.")} <= known
    given_up = {"gen_ai.system", "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"}
    assert not said & given_up


def test_its_settings_are_those_of_the_code() -> None:
    """All of tracing's, each with its default."""
    of_code = {
        f"WEIR_{field.name.upper()}": str(field.default)
        for field in fields(Settings)
        if field.name.startswith("trace_")
    }
    assert dict(SETTING.findall(PAGE)) == of_code


def test_its_metrics_are_those_of_the_code() -> None:
    """All of them, each with its label."""
    of_code = {
        f"{metric._name}_total": metric._labelnames
        for metric in vars(traces).values()
        if isinstance(metric, MetricWrapperBase)
    }
    assert {name: (label,) for name, label in METRIC.findall(PAGE)} == of_code

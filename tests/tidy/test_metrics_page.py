"""`docs/operations/metrics.md` has every metric, every word of `/readyz`, and nothing else."""

import importlib
import pkgutil
import re
from pathlib import Path

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from gateway import telemetry
from gateway.serving.condition import WORDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "metrics.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*)\| (sum|max) \| [^|]+ \| [^|]*\|$", re.MULTILINE)
WORD = re.compile(r"^\| `(\w+)` \| (503)? ?\| [^|]+ \| [^|]+ \|$", re.MULTILINE)
UNREADY = {"draining", "journal", "redis", "clock", "directory"}
NAMED = re.compile(r"\bINV-\d+\b")


def of_the_code() -> dict[str, MetricWrapperBase]:
    """Every metric that the gateway defines, by the name under which it is scraped."""
    for module in pkgutil.iter_modules(telemetry.__path__):
        importlib.import_module(f"gateway.telemetry.{module.name}")
    found = [each for each in REGISTRY._collector_to_names if isinstance(each, MetricWrapperBase)]
    return {each._name + ("_total" if each._type == "counter" else ""): each for each in found}


def test_its_metrics_are_those_of_the_code_with_their_labels() -> None:
    """Each once."""
    rows = [(name, tuple(re.findall(r"`(\w+)`", labels))) for name, labels, _ in ROW.findall(PAGE)]
    assert len(rows) == len(dict(rows))
    assert dict(rows) == {name: each._labelnames for name, each in of_the_code().items()}


def test_counters_and_histograms_are_summed() -> None:
    """What is the same on every gateway is a gauge."""
    for name, _, over in ROW.findall(PAGE):
        if of_the_code()[name]._type != "gauge":
            assert over == "sum", name


def test_its_words_are_those_of_readyz() -> None:
    """And which of them stop a gateway from serving."""
    words = dict(WORD.findall(PAGE))
    assert words.keys() == {"draining", *WORDS}
    assert {word for word, status in words.items() if status} == UNREADY


def test_the_invariant_that_a_metric_watches_is_named_in_both() -> None:
    """In its own help, and on the page."""
    for line in PAGE.splitlines():
        found = ROW.match(line)
        if found is not None:
            of_code = set(NAMED.findall(of_the_code()[found[1]]._documentation))
            assert of_code <= set(NAMED.findall(line)), found[1]


def test_what_the_page_tells_to_watch_is_there() -> None:
    """Names in its words are names of metrics."""
    known = {*of_the_code(), *(name.removesuffix("_total") for name in of_the_code())}
    for name in re.findall(r"`(weir_\w+)", PAGE):
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        assert {name, base} & known, name

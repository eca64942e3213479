"""What watches the gateways: every name in it exists, and every panel asks a question."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import compose_file
import pytest
import yaml
from prometheus_client import REGISTRY, Histogram
from prometheus_client.metrics_core import Metric

import gateway.telemetry

DEPLOY = compose_file.ROOT / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
OTHERS = {
    "up",
    "ALERTS",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
}
"""Names that are not ours: Prometheus' own, and those of its library."""
UNITS = {"none", "percentunit", "s", "bytes"}
QUESTIONS = {"capacity", "latency", "queue", "money", "faults"}
Json = dict[str, Any]


def read(path: Path) -> Json:
    """A YAML file below deploy/."""
    found: Json = yaml.safe_load((DEPLOY / path).read_text())
    return found


def families() -> dict[str, Metric]:
    """Every metric that a gateway has, by its name in Prometheus."""
    for module in pkgutil.iter_modules(gateway.telemetry.__path__):
        importlib.import_module(f"gateway.telemetry.{module.name}")
    return {family.name: family for family in REGISTRY.collect()}


def names_in(expression: str) -> set[str]:
    """The metrics of an expression, recorded ones included."""
    bare = re.sub(r"\{[^}]*\}|\"[^\"]*\"|\[[^\]]*\]", "", expression)
    bare = re.sub(r"\b(by|on|group_left|without|ignoring)\s*\([^)]*\)", "", bare)
    words = re.findall(r"[A-Za-z_:][A-Za-z0-9_:]*", bare)
    return {word for word in words if "_seconds" in word or word.startswith(("weir", "process"))}


def known_names() -> set[str]:
    """What an expression may name."""
    names = set(OTHERS)
    for name, family in families().items():
        if family.type == "counter":
            names.add(f"{name}_total")
        elif family.type == "histogram":
            names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            names.add(name)
    return names | {rule["record"] for rule in rules() if "record" in rule}


def rules() -> list[Json]:
    """All rules, of both kinds."""
    files = sorted((DEPLOY / "prometheus/rules").glob("*.yml"))
    assert files
    return [rule for path in files for group in read(path)["groups"] for rule in group["rules"]]


def panels(path: Path) -> list[Json]:
    """A dashboard's panels."""
    found: list[Json] = json.loads(path.read_text())["panels"]
    return found


def test_dashboards_are_what_their_panels_say(tmp_path: Path) -> None:
    """The JSON files are as deploy/grafana/make.py writes them."""
    subprocess.run(
        [sys.executable, str(DEPLOY / "grafana/make.py"), str(tmp_path)], check=True, timeout=60
    )
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in DASHBOARDS}
    assert {path.stem for path in DASHBOARDS} == QUESTIONS


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_ask_and_answer(path: Path) -> None:
    """Each title is a question, each panel says what is seen, in which unit, and lies on nothing
    else; each dashboard says first whether figures are simulated."""
    document = json.loads(path.read_text())
    source = read(Path("grafana/provisioning/datasources/prometheus.yaml"))["datasources"][0]
    taken: set[tuple[int, int]] = set()
    assert "simulated" in document["panels"][0]["title"]
    for panel in document["panels"]:
        assert "?" in panel["title"], panel["title"]
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["datasource"]["uid"] == source["uid"]
        assert all(target["legendFormat"] != "__auto" for target in panel["targets"])
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in document["panels"]]
    assert len(set(ids)) == len(ids)


def test_what_is_of_a_worker_says_whether_it_is_simulated() -> None:
    """Each series that is named after a worker has the note in its legend and in its labels."""
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                if "{{worker}}" in target["legendFormat"]:
                    assert "{{worker}}{{note}}" in target["legendFormat"], panel["title"]
                    assert "group_left (note) weir:worker" in target["expr"], panel["title"]


def test_every_name_exists() -> None:
    """No dashboard and no rule names a metric that a gateway does not have."""
    known = known_names()
    expressions = [rule["expr"] for rule in rules()]
    for path in DASHBOARDS:
        expressions += [target["expr"] for panel in panels(path) for target in panel["targets"]]
    assert len(expressions) > 100
    used = set().union(*map(names_in, expressions))
    assert used - known == set()
    assert "weir_journal_bytes" in used


def test_targets_of_time_are_bounds_of_their_histograms() -> None:
    """So that a share within the target is exact."""
    text = (DEPLOY / "prometheus/rules/recording.yml").read_text()
    text += "".join(path.read_text() for path in DASHBOARDS)
    found = set(re.findall(r'(weir_\w+)_bucket\{[^}]*le=\\?"([0-9.]+)\\?"', text))
    assert {bound for _, bound in found} == {"0.8", "0.04", "60.0"}
    families()
    for name, bound in found:
        histogram = REGISTRY._names_to_collectors[f"{name}_bucket"]
        assert isinstance(histogram, Histogram)
        assert float(bound) in histogram._kwargs["buckets"], (name, bound)


def test_alerts_say_what_to_do() -> None:
    """Each is a page or a ticket, says what is and what follows, and names a page that exists or
    that docs/operations has."""
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) >= 20
    for rule in alerts:
        severities = ("none",) if rule["alert"] == "WeirWatchdog" else ("page", "ticket")
        assert rule["labels"]["severity"] in severities, rule["alert"]
        annotations = rule["annotations"]
        assert set(annotations) == {"summary", "description", "page"}, rule["alert"]
        assert (compose_file.ROOT / annotations["page"]).exists(), annotations["page"]


def test_prometheus_reads_the_services_of_the_compose_file() -> None:
    """By their names and ports, each gateway among them."""
    services = compose_file.services(compose_file.filled_environment())
    named = set()
    for job in read(Path("prometheus/prometheus.yml"))["scrape_configs"]:
        for given in job.get("static_configs", ()):
            named |= {target.rpartition(":")[0] for target in given["targets"]}
        for given in job.get("dns_sd_configs", ()):
            named |= set(given["names"])
    gateways = {name for name in services if name.startswith("gateway-")}
    workers = {"worker-local", "sglang"}
    assert named == {*gateways, *workers, "otel-collector", "127.0.0.1"}
    for name in named - {"127.0.0.1"}:
        assert set(services[name]["networks"]) & set(services["prometheus"]["networks"]), name


def test_the_balancer_knows_every_gateway() -> None:
    """And asks each whether it is ready."""
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    services = compose_file.services(compose_file.filled_environment())
    gateways = {name for name in services if name.startswith("gateway-")}
    assert set(re.findall(r"(?m)^  server (\S+) \1:8080$", text)) == gateways
    assert "uri /readyz" in text


@pytest.mark.parametrize("destination", ["log", "otlp"])
def test_the_collector_uses_what_it_defines(destination: str) -> None:
    """Both of its files together: no pipeline names a part that is not there, none is idle."""
    parts: Json = {"receivers": {}, "processors": {}, "exporters": {}}
    pipelines: Json = {}
    for name in ("collector.yaml", f"to-{destination}.yaml"):
        content = read(Path("otel-collector") / name)
        for kind, found in parts.items():
            found.update(content.get(kind, {}))
        pipelines.update(content["service"].get("pipelines", {}))
    assert set(pipelines) == {"traces", "metrics"}
    for kind, found in parts.items():
        used = {name for pipeline in pipelines.values() for name in pipeline[kind]}
        assert used == set(found), kind
    endpoint = parts["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    example = compose_file.example_environment()["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert endpoint.rpartition(":")[2] == example.rpartition(":")[2]


def test_grafana_finds_what_is_provisioned() -> None:
    """The folder of the dashboards is the one that is mounted, the source's address a service's."""
    services = compose_file.services(compose_file.filled_environment())
    mounts = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    provider = read(Path("grafana/provisioning/dashboards/weir.yaml"))["providers"][0]
    assert mounts["./deploy/grafana/dashboards"] == provider["options"]["path"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.removeprefix(provider["options"]["path"] + "/") in {p.name for p in DASHBOARDS}
    source = read(Path("grafana/provisioning/datasources/prometheus.yaml"))["datasources"][0]
    assert source["url"] == "http://prometheus:9090"

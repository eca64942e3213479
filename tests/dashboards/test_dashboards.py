"""Every query of every dashboard is answered by a real Prometheus, over a system in which all that
it asks after has happened; and what the answers look like is drawn."""

import json
import os
import re
from pathlib import Path
from typing import Any

import compose_file
import pytest
from dashboards import drawn
from dashboards.prometheus_server import Series
from dashboards.watched import Watched

pytestmark = pytest.mark.timeout(300)
FOLDER = compose_file.ROOT / "deploy/grafana/dashboards"
NAMES = ("capacity", "latency", "queue", "money", "faults")
PICTURES = "WEIR_DASHBOARD_PICTURES"
Json = dict[str, Any]

WAITED = "max(max_over_time(weir_pool_waiting_requests"
HAPPENED = {
    "a worker was away": "max_over_time((1 - min(weir:worker_healthy))[2m:1s]) >= 1",
    "the other was too": "max_over_time((2 - sum(weir:worker_healthy))[2m:1s]) >= 2",
    "interactive waited": f'{WAITED}{{request_class="interactive"}}[2m])) > 0',
    "batch waited": f'{WAITED}{{request_class="batch"}}[2m])) > 5',
    "a limit refused": "sum(weir_refusals_total) > 0",
    "a wait was over": 'sum(weir_queue_refusals_total{reason="wait_over"}) > 0',
    "batch made room": "sum(weir_queue_taken_back_total) > 0",
    "a provider helped": "sum(weir_hosted_attempts_total) > 0",
    "it asks money for it": "sum(weir_hosted_cost_total) > 0",
    "some have no price": "sum(weir_unpriced_requests_total) > 0",
    "a worker failed some": 'sum(weir_requests_ended_total{outcome="worker_failed"}) > 0',
    "nobody pays for that": "sum(weir_unbilled_cost_total) > 0",
    "a budget was reached": "sum(weir_budget_alerts_total) > 0",
    "the webhook failed once": 'sum(weir_budget_alert_deliveries_total{result="failed"}) > 0',
    "metrics were pushed": 'sum(weir_otlp_pushes_total{result="taken"}) > 0',
    "an alert fires": 'count(ALERTS{alertname="WeirUnpricedRequests",alertstate="firing"}) > 0',
    "workers are noted as simulated": 'count(weir:worker{note=" (simulated)"}) == 2',
}
"""What the script brings about, as Prometheus saw it."""


def answered(watched: Watched, document: Json) -> list[drawn.Answered]:
    """Each panel with the answers to its queries."""
    found = []
    for panel in document["panels"]:
        series: list[tuple[str, Series]] = []
        for target in panel["targets"]:
            ask = watched.over_time if target["range"] else watched.now
            series += [
                (_legend(target["legendFormat"], each.labels), each) for each in ask(target["expr"])
            ]
        found.append(drawn.Answered(panel, series))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_query_has_data(watched: Watched, name: str) -> None:
    """Each on its own, and also without the zero that some give where there is nothing."""
    empty = []
    for panel in json.loads((FOLDER / f"{name}.json").read_text())["panels"]:
        for target in panel["targets"]:
            ask = watched.over_time if target["range"] else watched.now
            series = ask(target["expr"].removesuffix(" or vector(0)"))
            if not any(each.points for each in series):
                empty.append(f"{panel['title']} | {target['expr']}")
    assert not empty


@pytest.mark.parametrize("what", HAPPENED)
def test_what_happened_is_seen(watched: Watched, what: str) -> None:
    """The script's events, so that no panel shows a quiet system and calls that an answer."""
    assert watched.now(HAPPENED[what]), HAPPENED[what]


def test_both_gateways_and_workers_are_read(watched: Watched) -> None:
    """Every target answers at the end."""
    targets = watched.server.targets()
    assert len(targets) == 4
    assert set(targets.values()) == {"up"}


def test_no_series_is_of_a_tenant(watched: Watched) -> None:
    """Of all that was scraped: no label holds a tenant, a key or a request."""
    series = watched.now('{__name__=~"weir_.+"}')
    labels = {label for each in series for label in each.labels}
    assert len(series) > 200
    assert not {label for label in labels if re.search("tenant|key|request_id", label)}


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_drawn(watched: Watched, tmp_path: Path, name: str) -> None:
    """Of each dashboard, from the same answers; kept where WEIR_DASHBOARD_PICTURES says."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    path = Path(os.environ.get(PICTURES, tmp_path)) / f"{name}.png"
    drawn.draw(document, answered(watched, document), path, began_s=watched.began_s)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


def _legend(pattern: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern)

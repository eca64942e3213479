"""A system that is watched by a real Prometheus while a script runs over it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("dashboards.prometheus_server", "dashboards.scripted_run")

from dashboards import prometheus_server, scripted_run  # noqa: E402 - rewritten assertions
from dashboards.watched import Watched  # noqa: E402

ONCE_A_MINUTE = (
    "weir_reconcile_findings",
    "weir_budget_alert_deliveries_total",
    "rate(weir_queue_ceiling_samples_total[10s])",
)
"""Judging budgets, reconciling, and learning from workers that were restarted."""


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Without Prometheus there is nothing to test, and that is a failure."""
    try:
        for name in ("prometheus", "promtool", "haproxy"):
            prometheus_server.program(name)
    except prometheus_server.PrometheusMissing as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def watched(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The script, played once."""
    folder: Path = tmp_path_factory.mktemp("watched")
    with scripted_run.watched_system(folder) as system:
        ready = system.ready
        targets = {
            "weir-gateway": [url.removeprefix("http://") for url in ready["gateways"]],
            "weir-worker": [each["url"].removeprefix("http://") for each in ready["workers"]],
        }
        with prometheus_server.prometheus(folder, targets) as server:
            run = scripted_run.Run(
                system, lambda: [each for each in ONCE_A_MINUTE if not server.knows(each)]
            )
            run.play()
            yield Watched(system, server, run.began_s, run.ended_s)

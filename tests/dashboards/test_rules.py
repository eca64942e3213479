"""Prometheus' own tool accepts our configuration, and each alert fires when it should and only
then."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards import prometheus_server

RULES = prometheus_server.CONFIGURATION / "rules"
TTFT = "weir_time_to_first_token_seconds"
TPOT = "weir_time_per_output_token_seconds"
OF = '{model="m",request_class="interactive"'
Series = dict[str, str]

QUIET: Series = {
    'up{job="weir-gateway",instance="a"}': "1x60",
    'up{job="otel-collector",instance="c"}': "1x60",
    'weir_degraded{instance="a",part="redis"}': "0x60",
    'weir_degraded{instance="a",part="workers"}': "0x60",
    'weir_worker_healthy{instance="a",worker="w"}': "1x60",
    'weir_worker_healthy{instance="b",worker="w"}': "1x60",
    'weir_worker_info{model="m",worker="w",simulated="false"}': "1x60",
    'weir_errors_total{surface="v1",code="no_capacity"}': "0+4x60",
    'weir_errors_total{surface="v1",code="rate_limit_exceeded"}': "0+50x60",
    'weir_errors_total{surface="v1",code="internal_error"}': "1x60",
    'weir_requests_ended_total{model="m",outcome="completed"}': "0+100x60",
    'weir_requests_ended_total{model="m",outcome="worker_failed"}': "0+1x60",
    f'{TTFT}_bucket{OF},le="0.8"}}': "0+99x60",
    f"{TTFT}_count{OF}}}": "0+100x60",
    f'{TPOT}_bucket{OF},le="0.04"}}': "0+99x60",
    f"{TPOT}_count{OF}}}": "0+100x60",
    f"weir_pool_oldest_wait_seconds{OF}}}": "4x60",
    'weir_event_loop_lag_seconds_bucket{instance="a",le="0.1"}': "0+100x60",
    'weir_event_loop_lag_seconds_bucket{instance="a",le="+Inf"}': "0+100x60",
    'weir_excess_sequences{instance="a"}': "0x60",
    'weir_hosted_circuit{provider="p"}': "1x60",
    'metering_lag_seconds{instance="a"}': "1x60",
    'weir_metering_lag_of_all_seconds{instance="a"}': "1x60",
    'weir_journal_bytes{instance="a"}': "75+0.5x24 75+0.5x24 87x12",
    'weir_journal_bytes_max{instance="a"}': "100x60",
    'weir_journal_missing_records{instance="a"}': "0x60",
    'weir_dead_letters{instance="a"}': "0x60",
    'weir_reconcile_findings{check="REC-1"}': "0x60",
    'weir_budget_alert_deliveries_total{result="failed"}': "1x60",
}
"""A system where all is well, a minute a value."""

LOUD: dict[str, Series] = {
    "WeirCollectorDown": {'up{job="otel-collector",instance="c"}': "0x60"},
    "WeirGatewayDown": {'up{job="weir-gateway",instance="a"}': "0x60"},
    "WeirNotServing": {'weir_degraded{instance="a",part="redis"}': "1x60"},
    "WeirDegraded": {'weir_degraded{instance="a",part="workers"}': "1x60"},
    "WeirWorkerDown": {
        'weir_worker_healthy{worker="v"}': "0x60",
        'weir_worker_info{model="m",worker="v",simulated="false"}': "1x60",
    },
    "WeirNoWorker": {
        'weir_worker_healthy{instance="a",worker="w"}': "0x60",
        'weir_worker_healthy{instance="b",worker="w"}': "0x60",
    },
    "WeirRequestsFail": {'weir_requests_ended_total{model="m",outcome="worker_failed"}': "0+9x60"},
    "WeirRequestsRefused": {'weir_errors_total{surface="v1",code="no_capacity"}': "0+9x60"},
    "WeirInternalErrors": {'weir_errors_total{surface="v1",code="internal_error"}': "_x45 1x15"},
    "WeirFirstTokensLate": {f'{TTFT}_bucket{OF},le="0.8"}}': "0+90x60"},
    "WeirTokensSlow": {f'{TPOT}_bucket{OF},le="0.04"}}': "0+90x60"},
    "WeirQueueOld": {f"weir_pool_oldest_wait_seconds{OF}}}": "8x60"},
    "WeirEventLoopLate": {
        'weir_event_loop_lag_seconds_bucket{instance="a",le="0.1"}': "0+10x60",
        'weir_event_loop_lag_seconds_bucket{instance="a",le="1.0"}': "0+100x60",
    },
    "WeirExcessSequences": {'weir_excess_sequences{instance="a"}': "2x60"},
    "WeirHostedCircuitOpen": {'weir_hosted_circuit{provider="p"}': "2x60"},
    "WeirMeteringLate": {'metering_lag_seconds{instance="a"}': "61x60"},
    "WeirUsageOfAGoneGateway": {'weir_metering_lag_of_all_seconds{instance="a"}': "601x60"},
    "WeirJournalNearlyFull": {'weir_journal_bytes{instance="a"}': "91x60"},
    "WeirJournalRecordsMissing": {'weir_journal_missing_records{instance="a"}': "1x60"},
    "WeirDeadLetters": {'weir_dead_letters{instance="a"}': "1x60"},
    "WeirReconcileFindings": {'weir_reconcile_findings{check="REC-1"}': "1x60"},
    "WeirUnpricedRequests": {
        'weir_unpriced_requests_total{model="m",provider="self"}': "_x20 1x40"
    },
    "WeirBudgetAlertsUndelivered": {
        'weir_budget_alert_deliveries_total{result="failed"}': "0+1x60"
    },
}
"""What differs where that alert is to fire."""

ALSO = {"WeirNoWorker": {"WeirWorkerDown"}}
"""Alerts that fire with it, and rightly."""

ALWAYS = "WeirWatchdog"
"""Fires as long as anything is judged at all."""


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """As it stands, but for the folder that it is mounted at."""
    path = prometheus_server.changed_configuration(tmp_path / "prometheus", {})
    original = (prometheus_server.CONFIGURATION / "prometheus.yml").read_text()
    path.write_text(original.replace("/etc/prometheus/", f"{path.parent}/"))
    done = _promtool("check", "config", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 rules found" in done.stdout


def test_every_alert_is_tried() -> None:
    """The table has each of them."""
    groups = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    assert {rule["alert"] for group in groups for rule in group["rules"]} == {*LOUD, ALWAYS}


@pytest.mark.parametrize("alert", [None, *LOUD])
def test_alerts_fire_when_they_should(tmp_path: Path, alert: str | None) -> None:
    """And none of the others, and none where all is well."""
    expected = {alert} if alert is not None else set()
    _judge(tmp_path, LOUD.get(alert or "", {}), expected | ALSO.get(alert or "", set()))


def test_a_bug_wakes_somebody_a_second_time(tmp_path: Path) -> None:
    """A counter that was there grows."""
    grown = {'weir_errors_total{surface="v1",code="internal_error"}': "1x45 2x15"}
    _judge(tmp_path, grown, {"WeirInternalErrors"})


def test_a_worker_that_one_gateway_reaches_wakes_nobody(tmp_path: Path) -> None:
    """The other gateway's way to it is a ticket."""
    _judge(tmp_path, {'weir_worker_healthy{instance="a",worker="w"}': "0x60"}, {"WeirWorkerDown"})


def test_refusals_alone_wake_somebody(tmp_path: Path) -> None:
    """Nothing ended meanwhile, not even badly."""
    ended = {name: "_x60" for name in QUIET if name.startswith("weir_requests_ended_total")}
    _judge(tmp_path, ended, {"WeirRequestsRefused"})


def _judge(tmp_path: Path, changed: Series, expected: set[str]) -> None:
    """After 50 minutes exactly these alerts fire, and the one that always does."""
    series = QUIET | changed
    count = 'count by (alertname) (ALERTS{alertstate="firing"})'
    samples = [
        {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted({*expected, ALWAYS})
    ]
    test: dict[str, Any] = {
        "rule_files": [str(path) for path in sorted(RULES.glob("*.yml"))],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in series.items()],
                "promql_expr_test": [{"expr": count, "eval_time": "50m", "exp_samples": samples}],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    done = _promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def _promtool(*words: str) -> subprocess.CompletedProcess[str]:
    program = prometheus_server.program("promtool")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)

"""A counter of what is rare is there before its first event, so that an increase sees that one."""

import subprocess
import sys

_SHOW = """
from prometheus_client import generate_latest
import gateway.telemetry.metrics, gateway.telemetry.traces
print(generate_latest().decode())
"""


def test_what_is_rare_is_there_from_the_start() -> None:
    """In a process that has counted nothing yet."""
    shown = subprocess.run(
        [sys.executable, "-c", _SHOW], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for series in (
        'weir_trace_spans_total{result="failed"}',
        'weir_trace_spans_total{result="dropped"}',
        'weir_traces_not_kept_total{reason="failed"}',
        'weir_errors_total{code="internal_error",surface="admin"}',
        'weir_errors_total{code="store_unavailable",surface="billing"}',
        'weir_errors_total{code="no_capacity",surface="v1"}',
    ):
        assert f"{series} 0.0" in shown, series

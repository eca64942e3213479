"""What is sampled of a worker: its load often, how late its steps end seldom."""

from backend.loadtest.load_samples import read_step_lag_ms

METRICS = b"""# HELP weir_simulated_step_lag_ms By how many.
# TYPE weir_simulated_step_lag_ms gauge
weir_simulated_step_lag_ms{engine_type="unified",model_name="m"} 1.25
"""


def test_the_lag_of_steps_is_read_from_metrics() -> None:
    """Of a simulated worker; others have no such line, or one that is no figure."""
    assert read_step_lag_ms(METRICS) == 1.25
    assert read_step_lag_ms(b"weir_simulated_step_lag_ms 3\n") == 3
    assert read_step_lag_ms(b"sglang:num_running_reqs{} 3\n") is None
    assert read_step_lag_ms(b"weir_simulated_step_lag_ms_other 3\n") is None
    assert read_step_lag_ms(b"weir_simulated_step_lag_ms x\n") is None

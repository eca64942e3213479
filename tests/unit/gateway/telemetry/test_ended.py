"""What an ended request is counted as, and the bounds that it is held against."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY, Histogram
from usage_examples import a_record

from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord
from gateway.settings import Settings
from gateway.telemetry import buckets, ended, metrics
from gateway.telemetry.going import forget_gone

DEFAULTS = Settings(database_url="", redis_url="", journal_dir=Path())
M = {"model": "of-ended", "request_class": "batch"}
ADVICE = {
    "FIRST_TOKEN_S": (
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    ),
    "TOKEN_S": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
    "DURATION_S": (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ),
    "TOKENS": (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576),
}  # fmt: skip
"""What OpenTelemetry's conventions for generative AI advise (to a million tokens, where they go
further)."""


def value(name: str, **labels: str) -> float:
    """A sample as Prometheus is shown it."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture(autouse=True)
def _nothing_counted_yet() -> None:
    forget_gone({"model": [], "provider": [], "worker": []})


@pytest.mark.parametrize("name", ADVICE)
def test_q25_bounds_are_those_that_opentelemetry_advises_and_more(name: str) -> None:
    """Q25: and they rise, so that each is a bucket of its own."""
    bounds = getattr(buckets, name)
    assert set(ADVICE[name]) <= set(bounds)


def test_q25_every_bound_rises_and_reaches_what_may_happen() -> None:
    """Q25: the longest that anything may take by default is inside the last bound."""
    for name, bounds in vars(buckets).items():
        if name.isupper():
            assert list(bounds) == sorted(set(bounds)), name
    assert buckets.WAIT_S[-1] * 1000 >= DEFAULTS.queue_batch_wait_ms
    assert buckets.FIRST_TOKEN_S[-1] * 1000 >= DEFAULTS.queue_batch_wait_ms
    assert buckets.DURATION_S[-1] * 1000 >= DEFAULTS.stream_ms_max
    assert buckets.GAP_S[-1] * 1000 >= DEFAULTS.stall_timeout_ms


@pytest.mark.parametrize(
    ("setting", "metric"),
    [
        ("ttft_target_ms", metrics.TTFT),
        ("ttft_batch_target_ms", metrics.TTFT),
        ("queue_tpot_ms", metrics.TPOT),
    ],
)
def test_q25_the_targets_are_bounds(setting: str, metric: Histogram) -> None:
    """Q25: so the share within a target is counted, not interpolated."""
    target_s = getattr(DEFAULTS, setting) / 1000
    assert target_s in metric._upper_bounds


def test_what_is_within_its_target_is_counted_as_such() -> None:
    """At the target is within it, a millisecond more is not."""
    for ttft_ms, tpot_us in ((800, 40_000), (801, 40_001)):
        ended.observe_ended(replace(a_record(), **M, ttft_ms=ttft_ms, tpot_us=tpot_us))
    assert value("weir_time_to_first_token_seconds_bucket", **M, le="0.8") == 1
    assert value("weir_time_to_first_token_seconds_count", **M) == 2
    assert value("weir_time_per_output_token_seconds_bucket", **M, le="0.04") == 1
    assert value("weir_time_per_output_token_seconds_count", **M) == 2


def test_everything_of_a_request_is_counted_once() -> None:
    """Its end, tokens, times; what is not known of it is in no histogram."""
    record = replace(a_record(), **M, itl_max_us=70_000, tpot_us=9_000, usage_flags=("usage_fell",))
    flags = value("weir_usage_flags_total", flag="usage_fell")
    ended.observe_ended(record)
    assert value("weir_requests_ended_total", **M, outcome="completed") == 1
    kinds = ("prompt", "cached_prompt", "output")
    counted = [value("weir_tokens_total", model="of-ended", kind=kind) for kind in kinds]
    assert counted == [record.prompt_tokens, record.cached_prompt_tokens, record.output_tokens]
    assert value("weir_prompt_tokens_sum", **M) == record.prompt_tokens
    assert value("weir_output_tokens_sum", **M) == record.output_tokens
    assert value("weir_request_duration_seconds_sum", **M) == 0.25
    assert value("weir_longest_token_gap_seconds_sum", **M) == 0.07
    assert value("weir_usage_flags_total", flag="usage_fell") == flags + 1
    ended.observe_ended(replace(record, ttft_ms=None, tpot_us=None, itl_max_us=None))
    assert value("weir_time_to_first_token_seconds_count", **M) == 1
    assert value("weir_longest_token_gap_seconds_count", **M) == 1


def a_rated(**changes: object) -> UsageRecord:
    """One of a dollar fifty by the price book."""
    pico = 3 * 10**12 // 2
    rated = {"cost_pico": pico, "list_cost_pico": pico, "currency": "USD"}
    return replace(a_record(), **M, **{**rated, **changes})


def test_money_is_shown_in_whole_units_by_currency_class_and_provider() -> None:
    """What is owed, what the book makes of it, and of that what nobody pays for."""
    hosted = UsageAttempt(
        attempt=1, worker_id="hosted:h", provider="hosted:h", started_at_ms=1, ended_at_ms=2,
        outcome=Outcome.COMPLETED, provider_cost_pico=10**12 // 4,
    )  # fmt: skip
    lost = value("weir_unbilled_cost_total", currency="USD", outcome="worker_failed")
    ended.observe_ended(a_rated())
    ended.observe_ended(a_rated(provider="hosted:h", attempts=(hosted,)))
    ended.observe_ended(a_rated(outcome=Outcome.WORKER_FAILED, billable=False, cost_pico=0))
    of = {"currency": "USD", "request_class": "batch"}
    assert value("weir_cost_total", **of, provider="self") == 1.5
    assert value("weir_cost_total", **of, provider="hosted:h") == 1.5
    assert value("weir_list_cost_total", **of, provider="self") == 3.0
    assert value("weir_unbilled_cost_total", currency="USD", outcome="worker_failed") == lost + 1.5
    assert value("weir_hosted_cost_total", currency="USD", provider="hosted:h") == 0.25
    assert value("weir_unpriced_requests_total", model="of-ended", provider="self") == 0
    ended.observe_ended(a_rated(cost_pico=None, list_cost_pico=None))
    assert value("weir_unpriced_requests_total", model="of-ended", provider="self") == 1

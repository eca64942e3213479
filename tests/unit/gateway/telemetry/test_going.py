"""What is registered no more takes its series with it."""

from msgspec.structs import replace
from prometheus_client import REGISTRY
from usage_examples import a_record

from gateway.telemetry import ceilings, ended, metrics, money
from gateway.telemetry.going import forget_gone

MONEY = {"cost_pico": 2 * 10**12, "list_cost_pico": 2 * 10**12, "currency": "USD"}
HOSTED = "hosted:there"


def series_of(value: str) -> set[str]:
    """The samples that have it as a label."""
    return {
        sample.name
        for family in REGISTRY.collect()
        for sample in family.samples
        if value in sample.labels.values()
    }


def test_a_model_a_worker_and_a_provider_leave_nothing_behind() -> None:
    """Histograms' buckets and all; who is still there keeps what was counted."""
    for model in ("stays", "goes"):
        record = replace(a_record(), model=model, provider=HOSTED, ttft_ms=5, tpot_us=5, **MONEY)
        ended.observe_ended(record)
    metrics.HOSTED_CIRCUIT.labels(HOSTED).set(2)
    metrics.HOSTED_ATTEMPTS.labels(HOSTED, "completed").inc()
    ceilings.SEQUENCES.labels("w-goes").set(3)
    ceilings.BATCH.labels("w-goes").set(3)
    assert len(series_of("goes")) > 10
    assert len(series_of(HOSTED)) >= 4
    forget_gone({"model": ["stays"], "provider": ["self"], "worker": []})
    assert series_of("goes") == series_of(HOSTED) == series_of("w-goes") == set()
    assert metrics.ENDED.labels("stays", "interactive", "completed")._value.get() == 1
    ended.observe_ended(replace(a_record(), model="stays"))
    assert metrics.ENDED.labels("stays", "interactive", "completed")._value.get() == 2
    forget_gone({"model": [], "provider": [], "worker": []})
    assert series_of("stays") == set()


def test_what_comes_again_is_counted_again() -> None:
    """The series that were kept at hand are not those that were removed."""
    for _ in range(2):
        ended.observe_ended(replace(a_record(), model="again", cost_pico=None))
        assert metrics.ENDED.labels("again", "interactive", "completed")._value.get() == 1
        assert money.UNPRICED.labels("again", "self")._value.get() == 1
        forget_gone({"model": [], "provider": [], "worker": []})

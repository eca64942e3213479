"""Settings are read once, and what would switch a promise off is refused at the start (B23)."""

import pytest

from gateway.adapters.redis import connect_redis
from gateway.settings import SettingsError, listen_address, load_settings

LEAST = {
    "WEIR_DATABASE_URL": "postgresql://localhost/weir",
    "WEIR_REDIS_URL": "redis://localhost",
    "WEIR_JOURNAL_DIR": "journal",
}


def test_the_least_is_enough() -> None:
    """Everything else has a default."""
    settings = load_settings(dict(LEAST))
    assert settings.lease_renew_ms * 2 < settings.lease_ttl_ms
    assert listen_address(settings) == ("127.0.0.1", 8080)


@pytest.mark.parametrize("name", sorted(LEAST))
def test_what_is_missing_is_named(name: str) -> None:
    """One line, with the variable's name."""
    with pytest.raises(SettingsError, match=f"{name} is not set"):
        load_settings({key: value for key, value in LEAST.items() if key != name})


def test_c15_without_a_redis_nothing_starts() -> None:
    """C15: limits are never silently off: no WEIR_REDIS_URL, or an empty one, is an error."""
    with pytest.raises(SettingsError, match="WEIR_REDIS_URL is not set"):
        load_settings({key: value for key, value in LEAST.items() if key != "WEIR_REDIS_URL"})
    with pytest.raises(SettingsError):
        connect_redis(load_settings({**LEAST, "WEIR_REDIS_URL": ""}).redis_url, timeout_ms=100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEIR_LEASE_TTL_MS", "0"),
        ("WEIR_LEASE_TTL_MS", "300"),
        ("WEIR_LEASE_TTL_MS", "9" * 40),
        ("WEIR_LEASE_RENEW_MS", "5000"),
        ("WEIR_QUEUE_BATCH_FLOOR_PERMILLE", "501"),
        ("WEIR_QUEUE_BATCH_WAIT_MS", "9" * 16),
        ("WEIR_SHIPPER_BATCH_ROWS", "0"),
        ("WEIR_REDIS_TIMEOUT_MS", "-1"),
        ("WEIR_REDIS_TIMEOUT_MS", "ten"),
        ("WEIR_SHOW_WORKER_HEADER", "perhaps"),
        ("WEIR_BODIES_BYTES_MAX", "25165823"),
        ("WEIR_LISTEN", "garbage"),
        ("WEIR_LISTEN", "127.0.0.1:99999"),
        ("WEIR_JOURNAL_DIR", ""),
        ("WEIR_ALERT_WEBHOOK_URL", "hooks.example.com/x"),
        ("WEIR_ALERT_WEBHOOK_URL", "file:///etc"),
        ("WEIR_ALERT_WEBHOOK_SECRET", "whsec_no base64"),
        ("WEIR_TRACE_RATIO_PERMILLE", "1001"),
        ("WEIR_TRACE_CONTEXT", "sometimes"),
        ("WEIR_LOG_FORMAT", "xml"),
        ("WEIR_LOG_LEVEL", "info"),
        ("WEIR_LOG_REQUESTS", "some"),
        ("WEIR_METRICS_PUSH_MS", "0"),
        ("WEIR_METRICS_PUSH_MS", "1"),
        ("WEIR_METRICS_PUSH_MS", "3600001"),
        ("WEIR_TRACE_KEPT_PER_S", "1001"),
    ],
)
def test_what_would_break_a_promise_is_refused_by_name(name: str, value: str) -> None:
    """B23: no lease that lapses while its request runs, no shipper that ships nothing."""
    with pytest.raises(SettingsError, match="WEIR_") as caught:
        load_settings({**LEAST, name: value})
    assert value not in str(caught.value) or len(value) < 4

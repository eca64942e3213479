"""All settings of a gateway, read from the environment once. The only reader of `os.environ`.

Every variable is `WEIR_` + the field's name in capitals; units are part of the names. Where
telemetry goes has OpenTelemetry's own names: `gateway/otlp.py`.
"""

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path

from gateway.domain.body_room import TIMES_LARGEST_MIN
from gateway.otlp import OtlpError, endpoint_of
from gateway.telemetry.logs import FORMATS, LEVELS, REQUEST_LEVELS

_DIGITS_MAX = 19
_MAY_BE_ZERO = frozenset(
    {
        "WEIR_JOURNAL_RETENTION_HOURS",
        "WEIR_SHUTDOWN_GRACE_MS",
        "WEIR_QUEUE_BATCH_FLOOR_PERMILLE",
        "WEIR_TRACE_RATIO_PERMILLE",
        "WEIR_TRACE_KEPT_PER_S",
    }
)
_SEGMENTS_MIN = 4
_LEASE_TTL_MS_MAX = 600_000
_BATCH_FLOOR_PERMILLE_MAX = 500
_BATCH_WAIT_MS_MAX = 604_800_000
_TRACE_CONTEXTS = ("continue", "link", "ignore")
_TRACE_KEPT_PER_S_MAX = 1_000
_PUSH_MS_MIN, _PUSH_MS_MAX = 100, 3_600_000
_WEB_ADDRESS = re.compile(r"https?://[^/?#\s]")
_SECRET = re.compile(
    r"(?!whsec_).+|whsec_(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
)


class SettingsError(ValueError):
    """A variable is missing or does not parse; the message names it, never its value."""


@dataclass(frozen=True)
class Settings:
    """One production gateway's settings."""

    database_url: str
    """postgresql://…; any form psql takes."""
    redis_url: str
    """redis://, rediss:// or unix://; redis+sentinel://host:port,…/service; or
    redis+cluster://host:port,…: all forms are in `gateway/adapters/redis_url.py`."""
    journal_dir: Path
    """On a volume that outlives the process. One gateway per directory."""
    listen: str = "127.0.0.1:8080"
    body_bytes_max: int = 8 * 1024 * 1024
    bodies_bytes_max: int = 256 * 1024 * 1024
    """Of all bodies whose requests are not admitted yet; a tenant's share is in
    `gateway/domain/body_room.py`."""
    header_bytes_max: int = 64 * 1024
    body_read_ms_max: int = 30_000
    lease_ttl_ms: int = 10_000
    """A lease that nobody renewed for so long is free."""
    lease_renew_ms: int = 2_500
    redis_timeout_ms: int = 100
    """An admission decision fails after so long."""
    queue_batch_floor_permille: int = 50
    """Batch's share of what is sent to workers while interactive requests wait; 0: none."""
    queue_batch_wait_ms: int = 600_000
    """A batch request waits for a place for so long."""
    queue_tpot_ms: int = 40
    """The time per output token that ceilings are learned for; one value on every gateway."""
    ttft_target_ms: int = 800
    """What the live page holds the first tokens of interactive requests against."""
    ttft_batch_target_ms: int = 60_000
    """And those of batch."""
    queue_hosted_after_ms: int = 800
    """What may go to a hosted provider waits no longer for a worker."""
    directory_poll_ms: int = 250
    directory_stale_ms_max: int = 3_600_000
    """With Postgres unseen for so long, keys from the cache are refused."""
    stores_unseen_ms_max: int = 60_000
    """With both stores unseen for so long, everything is refused: a revocation could be missed."""
    shipper_interval_ms: int = 100
    shipper_batch_rows: int = 1000
    second_copy_entries_max: int = 100_000
    """So many requests that Postgres lacks have a copy in Redis, some 700 bytes each."""
    gateway_gone_ms: int = 60_000
    """A gateway that Redis has not seen for so long is gone: what its copies know is recorded."""
    provisional_hours: int = 24
    """Such a record waits so long for the gateway's own; then it is final."""
    journal_segment_bytes: int = 64 * 1024 * 1024
    journal_bytes_max: int = 32 * 1024**3
    """Admissions are refused while the journal takes so much; before that shipped segments go,
    however young."""
    journal_retention_hours: int = 168
    """Shipped segments are kept for so long: as far back as a restore of Postgres may go."""
    connect_timeout_ms: int = 2_000
    first_event_timeout_ms: int = 300_000
    """From dispatch to the engine's first event."""
    stall_timeout_ms: int = 120_000
    """Between two events of a running stream."""
    stream_ms_max: int = 3_600_000
    """A stream's longest duration."""
    slow_reader_ms_max: int = 60_000
    """A client that takes no byte for so long is dropped."""
    abort_drain_ms: int = 500
    """After an abort the engine's final usage is waited for this long."""
    keepalive_ms: int = 15_000
    shutdown_grace_ms: int = 30_000
    show_worker_header: bool = False
    """Whether answers carry x-weir-worker."""
    console_secure_cookie: bool = False
    """Whether browsers come by https though requests come here without: a proxy ends it. Then the
    cookie of a session is kept to https."""
    cache_salt_secret: str = ""
    """Derives each tenant's cache salt; set it to the same value on every replica."""
    log_format: str = "text"
    """Of lines of the log: `text`, or `json` for an object a line."""
    log_level: str = "INFO"
    """The least that is logged: DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    log_requests: str = "failed"
    """Which requests have a line of their own at their end: those that `failed` by our doing,
    `all`, or `none`."""
    metrics_push_ms: int = 15_000
    """Where a collector is named, metrics are sent to it so often."""
    alert_webhook_url: str = ""
    """Where alerts about budgets are sent, http:// or https://; empty: nowhere."""
    alert_webhook_secret: str = ""
    """Signs them: `whsec_` and base64, or any other text; empty: they are not signed."""
    trace_ratio_permille: int = 10
    """So many of a thousand requests are traced, drawn when they come. What of tracing is here
    counts only where traces go somewhere."""
    trace_kept_per_s: int = 10
    """Beyond these so many a second that failed, were sent twice or to a hosted provider, or were
    slower than their target."""
    trace_context: str = "continue"
    """A client's `traceparent`: its trace is gone on with (`continue`), linked to (`link`), or not
    looked at (`ignore`)."""
    otlp_traces_endpoint: str = ""
    """Where traces are sent, the whole URL; empty: nowhere, and nothing is recorded."""
    otlp_metrics_endpoint: str = ""
    """Where metrics are sent, the whole URL; empty: nowhere, they can be scraped all the same."""


def load_settings(environ: dict[str, str] | None = None) -> Settings:
    """Read Settings from `environ` (default: the process's).

    Raises SettingsError naming the first variable that is missing or does not parse.
    """
    source = dict(os.environ) if environ is None else environ
    values: dict[str, object] = {}
    for field in fields(Settings):
        name = "WEIR_" + field.name.upper()
        raw = None if field.name.startswith("otlp_") else source.get(name)
        if raw is None:
            if field.name in ("database_url", "redis_url", "journal_dir"):
                raise SettingsError(f"{name} is not set")
            continue
        values[field.name] = _parse(name, raw, field.type)
    try:
        values["otlp_traces_endpoint"] = endpoint_of("traces", source)
        values["otlp_metrics_endpoint"] = endpoint_of("metrics", source)
    except OtlpError as error:
        raise SettingsError(str(error)) from None
    settings = Settings(**values)  # type: ignore[arg-type]
    _check(settings)
    return settings


def listen_address(settings: Settings) -> tuple[str, int]:
    """Host and port of `listen`; an empty host is every address. Raises SettingsError."""
    host, _, port = settings.listen.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= 65535):
        raise SettingsError("WEIR_LISTEN must be host:port")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - ':8080' asks for it


def _check_telemetry(settings: Settings) -> None:
    if settings.trace_ratio_permille > 1000:
        raise SettingsError("WEIR_TRACE_RATIO_PERMILLE must be at most 1000, all of them")
    if settings.trace_kept_per_s > _TRACE_KEPT_PER_S_MAX:
        raise SettingsError(f"WEIR_TRACE_KEPT_PER_S must be at most {_TRACE_KEPT_PER_S_MAX}")
    if settings.trace_context not in _TRACE_CONTEXTS:
        raise SettingsError(f"WEIR_TRACE_CONTEXT must be one of {', '.join(_TRACE_CONTEXTS)}")
    if not _PUSH_MS_MIN <= settings.metrics_push_ms <= _PUSH_MS_MAX:
        raise SettingsError(
            f"WEIR_METRICS_PUSH_MS must be from {_PUSH_MS_MIN} to {_PUSH_MS_MAX}, an hour"
        )


def _check(settings: Settings) -> None:
    """Refuse what would switch limits or metering off without a word."""
    listen_address(settings)
    _check_bodies(settings)
    if settings.lease_renew_ms * 2 >= settings.lease_ttl_ms:
        raise SettingsError(
            "WEIR_LEASE_RENEW_MS must be less than half of WEIR_LEASE_TTL_MS, or leases lapse "
            "while their requests run"
        )
    if settings.journal_bytes_max < settings.journal_segment_bytes * _SEGMENTS_MIN:
        raise SettingsError(
            f"WEIR_JOURNAL_BYTES_MAX must be at least {_SEGMENTS_MIN} times "
            "WEIR_JOURNAL_SEGMENT_BYTES, or nothing can be deleted when it is reached"
        )
    if settings.queue_batch_floor_permille > _BATCH_FLOOR_PERMILLE_MAX:
        raise SettingsError(
            f"WEIR_QUEUE_BATCH_FLOOR_PERMILLE must be at most {_BATCH_FLOOR_PERMILLE_MAX}, or an "
            "interactive request waits behind more than one of batch"
        )
    if settings.queue_batch_wait_ms > _BATCH_WAIT_MS_MAX:
        raise SettingsError(
            f"WEIR_QUEUE_BATCH_WAIT_MS must be at most {_BATCH_WAIT_MS_MAX}, a week"
        )
    if settings.alert_webhook_url and not _WEB_ADDRESS.match(settings.alert_webhook_url):
        raise SettingsError("WEIR_ALERT_WEBHOOK_URL must begin with https:// or http:// and a host")
    if settings.alert_webhook_secret and not _SECRET.fullmatch(settings.alert_webhook_secret):
        raise SettingsError("WEIR_ALERT_WEBHOOK_SECRET begins with whsec_, and no base64 follows")
    _check_telemetry(settings)
    for name, value, allowed in (
        ("FORMAT", settings.log_format, FORMATS),
        ("LEVEL", settings.log_level, LEVELS),
        ("REQUESTS", settings.log_requests, tuple(REQUEST_LEVELS)),
    ):
        if value not in allowed:
            raise SettingsError(f"WEIR_LOG_{name} must be one of {', '.join(allowed)}")
    if settings.lease_ttl_ms > _LEASE_TTL_MS_MAX:
        raise SettingsError(f"WEIR_LEASE_TTL_MS must be at most {_LEASE_TTL_MS_MAX}")


def _check_bodies(settings: Settings) -> None:
    if settings.bodies_bytes_max < settings.body_bytes_max * TIMES_LARGEST_MIN:
        raise SettingsError(
            f"WEIR_BODIES_BYTES_MAX must be at least {TIMES_LARGEST_MIN} times "
            "WEIR_BODY_BYTES_MAX, or the largest bodies never find room"
        )


def _parse(name: str, raw: str, kind: object) -> object:
    if kind is int:
        if not raw.isascii() or not raw.isdigit():
            raise SettingsError(f"{name} must be a whole number")
        if len(raw) > _DIGITS_MAX or (int(raw) == 0 and name not in _MAY_BE_ZERO):
            raise SettingsError(f"{name} must be from 1 to {10**_DIGITS_MAX - 1}")
        return int(raw)
    if kind is bool:
        if raw.lower() not in ("true", "false", "1", "0"):
            raise SettingsError(f"{name} must be true or false")
        return raw.lower() in ("true", "1")
    if kind is Path:
        if not raw:
            raise SettingsError(f"{name} is empty")
        return Path(raw)
    return raw

"""Where telemetry is sent, by OpenTelemetry's own environment variables, so that a gateway is told
as every other program of an operator is. Headers, certificates, compression, time-outs and resource
attributes have such variables too, which the exporter reads by itself
(https://opentelemetry.io/docs/specs/otel/protocol/exporter/)."""

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

_WEB_ADDRESS = re.compile(r"https?://[^/?#\s]+[^\s]*")
_PROTOCOL = "http/protobuf"


class OtlpError(ValueError):
    """A variable says what no exporter here can do; the message names it, never its value."""


def endpoint_of(signal: Literal["traces", "metrics"], environ: Mapping[str, str]) -> str:
    """The URL that a signal is posted to, empty where it goes nowhere: no endpoint is set, its
    exporter is `none`, or the SDK is disabled. Raises OtlpError."""
    of_signal = signal.upper()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    if environ.get(f"OTEL_{of_signal}_EXPORTER", "").strip() == "none":
        return ""
    name, path = f"OTEL_EXPORTER_OTLP_{of_signal}_ENDPOINT", ""
    if not environ.get(name, "").strip():
        name, path = "OTEL_EXPORTER_OTLP_ENDPOINT", f"/v1/{signal}"
    url = environ.get(name, "").strip()
    if not url:
        return ""
    if not _WEB_ADDRESS.fullmatch(url) or not _has_port(url):
        raise OtlpError(f"{name} must begin with https:// or http:// and a host")
    for protocol in (f"OTEL_EXPORTER_OTLP_{of_signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        asked = environ.get(protocol, "").strip()
        if asked and asked != _PROTOCOL:
            raise OtlpError(f"{protocol} must be {_PROTOCOL}: nothing else is spoken here")
        if asked:
            break
    return url.rstrip("/") + path if path else url


def _has_port(url: str) -> bool:
    """Whether its port, if it names one, is a number that one can have."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False

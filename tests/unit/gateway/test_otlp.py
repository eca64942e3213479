"""Where telemetry goes, by OpenTelemetry's own variables."""

import pytest

from gateway.otlp import OtlpError, endpoint_of
from gateway.settings import SettingsError, load_settings

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
LEAST = {
    "WEIR_DATABASE_URL": "postgresql://localhost/weir",
    "WEIR_REDIS_URL": "redis://localhost",
    "WEIR_JOURNAL_DIR": "journal",
}


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, ""),
        ({BASE: ""}, ""),
        ({BASE: "http://collector:4318"}, "http://collector:4318/v1/traces"),
        ({BASE: "https://a.example/otlp/"}, "https://a.example/otlp/v1/traces"),
        ({BASE: "http://a:1", OF_TRACES: "http://b:2/as/it/is"}, "http://b:2/as/it/is"),
        ({BASE: "http://a:1", OF_TRACES: " "}, "http://a:1/v1/traces"),
        ({BASE: "http://a:1", "OTEL_SDK_DISABLED": "true"}, ""),
        ({BASE: "http://a:1", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({BASE: "http://a:1", "OTEL_TRACES_EXPORTER": "otlp"}, "http://a:1/v1/traces"),
        ({BASE: "http://a:1", "OTEL_METRICS_EXPORTER": "none"}, "http://a:1/v1/traces"),
        (
            {BASE: "http://a:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            "http://a:1/v1/traces",
        ),
        (
            {
                BASE: "http://a:1",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            },
            "http://a:1/v1/traces",
        ),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ""),
    ],
)
def test_the_url_is_what_opentelemetry_says_it_is(environ: dict[str, str], url: str) -> None:
    """A signal's own endpoint is taken as it is, the base gets the signal's path."""
    assert endpoint_of("traces", environ) == url


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (BASE, "collector:4318"),
        (BASE, "http:///no/host"),
        (BASE, "http://collector:port"),
        (OF_TRACES, "http://collector:99999/v1/traces"),
        (OF_TRACES, "grpc://collector:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_what_could_never_be_sent_is_refused_by_name(name: str, value: str) -> None:
    """At the start, as every setting is."""
    environ = {BASE: "http://a:1", name: value}
    with pytest.raises(OtlpError, match=name) as caught:
        endpoint_of("traces", environ)
    assert value not in str(caught.value)
    with pytest.raises(SettingsError, match=name):
        load_settings({**LEAST, **environ})


def test_settings_know_it() -> None:
    """Nowhere by default, and no variable of ours says otherwise."""
    assert load_settings(dict(LEAST)).otlp_traces_endpoint == ""
    there = load_settings({**LEAST, BASE: "http://a:1"})
    assert there.otlp_traces_endpoint == "http://a:1/v1/traces"
    assert load_settings({**LEAST, "WEIR_OTLP_TRACES_ENDPOINT": "x"}).otlp_traces_endpoint == ""

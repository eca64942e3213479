"""An engine's text becomes its counters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest

from billing.domain.engine_counters import EngineCounters
from gateway.wire.prometheus_text import Reading, read_counters, readings

SGLANG = """\
# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{engine_type="unified",is_streaming="false",priority=""} 794.0
sglang:prompt_tokens_total{engine_type="unified",is_streaming="true",priority=""} 833.0
sglang:generation_tokens_total{is_streaming="false"} 72.0
sglang:generation_tokens_total{is_streaming="true"} 88.0
sglang:num_requests_total{is_streaming="false"} 21.0
sglang:cached_tokens_total{cache_source="device"} 977.0
sglang:cached_tokens_total{cache_source="host"} 3.0
sglang:num_aborted_requests_total{model_name="m"} 7.0
sglang:num_running_reqs{tp_rank="0"} 2.0
sglang:http_responses_total{endpoint="/health",method="GET",status_code="200"} 4.0
sglang:http_responses_total{endpoint="/health_generate",method="GET",status_code="503"} 1.0
sglang:http_responses_total{endpoint="/v1/chat/completions",status_code="200"} 50.0
sglang:startup_time_seconds{phase="load_weight"} 0.8757803039989085
sglang:time_to_first_token_seconds_bucket{le="0.1"} 5.0
"""


def test_sums_over_labels() -> None:
    """As captured from SGLang 0.5.23: streams and whole answers, sources of what was cached; of
    what was answered only `/health`."""
    found = read_counters(SGLANG)
    assert found.mark is not None
    assert found == EngineCounters(found.mark, 2, 1627, 160, 980, 21, 7, 5)


def test_what_is_absent_is_none() -> None:
    """Nothing is taken for zero."""
    assert read_counters("") == EngineCounters()
    assert read_counters("sglang:num_requests_total 0\n") == EngineCounters(requests=0)


def test_the_mark_is_the_process() -> None:
    """The same text has the same, in any order; another start another; Prometheus' own too."""
    again = "\n".join(reversed(SGLANG.splitlines()))
    assert read_counters(again).mark == read_counters(SGLANG).mark
    other = SGLANG.replace("0.8757803039989085", "0.8757803039989086")
    assert read_counters(other).mark not in {None, read_counters(SGLANG).mark}
    assert read_counters("process_start_time_seconds 1.796e+09").mark is not None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "0.5", "1e30"])
def test_what_is_no_count_witnesses_nothing(value: str) -> None:
    """It would look like a counter that fell."""
    with pytest.raises(ValueError, match="no count"):
        read_counters(f'{SGLANG}sglang:num_requests_total{{x="y"}} {value}\n')


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a ",
        "a x",
        'a{b="c} 1',
        "a{b} 1",
        'a{b="c"',
        'a{b="c"}1 2 3',
        "a 1 x",
        "# a 1",
        'a{b="c" d="e"} 1',
    ],
)
def test_lines_that_are_none_are_passed_over(line: str) -> None:
    """And the next one is read."""
    assert list(readings(f"{line}\na 7\n", {"a"})) == [Reading("a", {}, 7.0)]


def test_forms_of_a_line() -> None:
    """Time stamps, spaces, escapes, a comma at the end, braces in a value."""
    text = 'a{x="1", y = "q\\"\\\\\\nz}",} 3 1700000000000\na{}\t4\r\nb 5\nab 6\n'
    assert list(readings(text, {"a"})) == [
        Reading("a", {"x": "1", "y": 'q"\\\nz}'}, 3.0),
        Reading("a", {}, 4.0),
    ]


@given(st.lists(st.tuples(st.text(), st.integers(0, 2**40)), unique_by=lambda each: each[0]))
def test_reads_what_the_client_library_writes(counts: list[tuple[str, int]]) -> None:
    """Any label value; only its surrogates are not text."""
    registry = CollectorRegistry()
    counter = Counter("a", "A.", ["b"], registry=registry)
    written = []
    for label, value in counts:
        try:
            label.encode()
        except UnicodeEncodeError:
            continue
        counter.labels(b=label).inc(value)
        written.append(Reading("a_total", {"b": label}, float(value)))
    assert list(readings(generate_latest(registry).decode(), {"a_total"})) == written

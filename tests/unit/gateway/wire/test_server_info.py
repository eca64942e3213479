import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.domain.engine_facts import EngineFacts, PriorityOrder
from gateway.wire.server_info import read_server_info

CAPTURED: dict[str, object] = {
    "model_path": "/models/tiny",
    "context_length": 2048,
    "page_size": 1,
    "max_running_requests": 16,
    "max_queued_requests": None,
    "enable_priority_scheduling": False,
    "default_priority_value": None,
    "schedule_low_priority_values_first": False,
    "priority_scheduling_preemption_threshold": 10,
    "enable_cache_report": True,
    "status": "ready",
    "max_total_num_tokens": 8192,
    "max_req_input_len": 2042,
    "internal_states": [{"last_gen_throughput": 0.0}],
    "version": "0.5.23",
}
"""The fields of SGLang 0.5.23's answer that matter here, with the values it gave."""

ODD = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers())


def read(**changes: object) -> EngineFacts:
    return read_server_info(json.dumps({**CAPTURED, **changes}).encode())


def test_the_captured_answer_is_understood() -> None:
    """As SGLang 0.5.23 sent it."""
    assert read() == EngineFacts(
        version="0.5.23",
        priority_scheduling=False,
        lowest_priority_first=False,
        cache_report=True,
        context_tokens=2048,
        pool_tokens=8192,
        input_bound_tokens=2042,
        page_tokens=1,
        running_max=16,
    )
    order = read(enable_priority_scheduling=True, schedule_low_priority_values_first=True)
    assert order.priority_order is PriorityOrder.LOWEST_FIRST


def test_a_context_that_the_engine_took_from_its_model_is_null() -> None:
    """Without --context-length the field is null; the other bounds hold it."""
    facts = read(context_length=None)
    assert (facts.context_tokens, facts.output_room(10)) == (None, 2036)


@pytest.mark.parametrize(
    ("states", "option", "running_max"),
    [
        ([{"effective_max_running_requests_per_dp": 30}] * 2, 30, 60),
        ([{"effective_max_running_requests_per_dp": 30}] * 2, None, 60),
        ([{"effective_max_running_requests_per_dp": 30}, {}], 40, 40),
        ([{"effective_max_running_requests_per_dp": 0}], 40, 40),
        ([], None, None),
        ("odd", 40, 40),
    ],
)
def test_ranks_say_how_many_run(
    states: object, option: int | None, running_max: int | None
) -> None:
    """Together, where all say so; else what was asked of the engine."""
    assert read(internal_states=states, max_running_requests=option).running_max == running_max


@given(st.dictionaries(st.sampled_from(sorted(CAPTURED)), ODD))
def test_odd_values_are_none(changes: dict[str, object]) -> None:
    """Never an error, never a bound of the wrong kind, and nothing else is lost with it."""
    facts = read(**changes)
    for told in (facts.context_tokens, facts.pool_tokens, facts.input_bound_tokens):
        assert told is None or (isinstance(told, int) and told > 0)
    assert "max_total_num_tokens" in changes or facts.pool_tokens == 8192


def test_an_engine_of_weirs_says_whether_it_is_simulated() -> None:
    """SGLang does not."""
    assert read(weir_engine="simulated").simulated is True
    assert read(weir_engine="local").simulated is False
    assert read().simulated is None
    assert read(weir_engine=1).simulated is None


def test_a_version_is_short_and_printable() -> None:
    """It is shown to operators."""
    assert read(version="x" * 500).version == "x" * 64
    assert read(version="a\nb").version is None


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"null", b"[" * 20_000])
def test_what_is_no_object_is_an_error(body: bytes) -> None:
    """The worker did not say what it is."""
    with pytest.raises(ValueError, match="no JSON object"):
        read_server_info(body)

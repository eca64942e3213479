"""The fuzzer notices a leak: what a gateway must not send is told, wherever it stands."""

import json
from typing import Any

import pytest
from fuzz.engine_fields import CHAT, COMPLETION, CONTROLS, GATEWAYS_OWN, MEDIA_CONTROLS
from fuzz.recording_engine import Recorder

CHAT_PATH, COMPLETION_PATH = "/v1/chat/completions", "/v1/completions"
PIXEL = "data:image/png;base64,AA=="
SENT: dict[str, Any] = {
    "model": "m", "stream": True, "max_tokens": 5, "rid": "0" * 36, "cache_salt": "a" * 32,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
}  # fmt: skip
CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_SENT: dict[str, Any] = {
    **SENT,
    "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": PIXEL}},
            ],
        },
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"rid": {"task": "a"}}}}
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"rid": 1}}},
    "chat_template_kwargs": {"enable_thinking": False},
    "logit_bias": {"5": 1.0},
}
PLACES: tuple[tuple[str | int, ...], ...] = (
    ("messages", 0),
    ("messages", 1, "tool_calls", 0),
    ("messages", 1, "tool_calls", 0, "function"),
    ("messages", 2, "content", 0),
    ("messages", 2, "content", 1),
    ("messages", 2, "content", 1, "image_url"),
    ("tools", 0),
    ("tools", 0, "function"),
    ("tool_choice",),
    ("tool_choice", "function"),
    ("response_format",),
    ("response_format", "json_schema"),
    ("stream_options",),
    ("chat_template_kwargs",),
)


def faults(body: Any, path: str = CHAT_PATH) -> list[str]:
    recorder = Recorder(app=None)  # type: ignore[arg-type] # no application is asked
    recorder.judge(path, json.dumps(body).encode())
    found: list[str] = recorder.seen()["faults"]
    return found


def spoilt(place: tuple[str | int, ...], name: str, value: Any) -> Any:
    body = json.loads(json.dumps(CHAT_SENT))
    target = body
    for step in place:
        target = target[step]
    target[name] = value
    return body


def test_what_a_gateway_sends_is_no_fault() -> None:
    """Else every run would fail; what stands in a schema is the tenant's."""
    assert faults(CHAT_SENT) == []
    assert faults({**SENT, "prompt": "a", "json_schema": "{}"}, COMPLETION_PATH) == []


@pytest.mark.parametrize("name", sorted(CONTROLS - GATEWAYS_OWN))
@pytest.mark.parametrize("path", [CHAT_PATH, COMPLETION_PATH])
def test_a_control_that_is_let_through_is_told(path: str, name: str) -> None:
    """INV-12, judged by no list of the gateway's: `session_id`, say."""
    body = CHAT_SENT if path == CHAT_PATH else {**SENT, "prompt": "a"}
    assert faults({**body, name: "x"}, path) == [f"{path}: field {name}"]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_a_nested_control_is_told(place: tuple[str | int, ...]) -> None:
    """A `rid` in a message, a part, a tool or a form, and all the others."""
    for name in sorted(CONTROLS | MEDIA_CONTROLS):
        told = faults(spoilt(place, name, "x"))
        assert [each for each in told if each.endswith(f".{name}")], (place, name)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (("messages", 2, "content", 0), "image_url", {"url": PIXEL}),
        (("messages", 2, "content", 0), "type", "image_embeds"),
        (("messages", 2, "content", 1, "image_url"), "url", "http://10.0.0.1"),
        (("messages", 2, "content", 1, "image_url"), "url", {"rid": "x"}),
        (("messages", 0), "name", {"rid": "x"}),
        (("messages", 0), "parsed", {"rid": "x"}),
        (("messages", 0), "image_url", PIXEL),
        (("response_format",), "type", "other"),
        ((), "temperature", [{"rid": "x"}]),
    ],
)
def test_what_is_hidden_is_told(place: tuple[str | int, ...], name: str, value: Any) -> None:
    """A medium in a text, an object where a text stands, a reference, another kind."""
    assert faults(spoilt(place, name, value))


def test_the_lists_do_not_contradict_each_other() -> None:
    """What may be sent is no control, but the gateway's own."""
    for shape in (CHAT, COMPLETION):
        assert isinstance(shape, dict)
        assert CONTROLS & set(shape) == GATEWAYS_OWN

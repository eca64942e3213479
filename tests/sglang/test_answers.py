"""A whole answer of the gateway means what the engine's own whole answer to the same body means.

The gateway asks every engine for streams and assembles; SGLang parses tools and reasoning in
streams and in whole answers by different code.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from sglang_server import Behind

Json = dict[str, Any]


def tool(name: str, **parameters: list[str]) -> Json:
    properties = {key: {"type": "string", "enum": values} for key, values in parameters.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "strict": True, "parameters": schema}}


WEATHER, CLOCK = tool("get_weather", city=["Paris", "Rome"]), tool("get_time", zone=["UTC", "CET"])
THOUGHT = "<think>\n(one|two)</think>\n\nThe (Nile|Po)\\."
CALL = '<tool_call>\n\\{"name": "get_time", "arguments": \\{"zone": "(UTC|CET)"\\}\\}\n</tool_call>'
SCHEMA = CLOCK["function"]["parameters"]
CHAT: dict[str, Json] = {
    "plain": {"max_tokens": 8},
    "stop string": {"max_tokens": 16, "stop": [" River", "2."]},
    "stop string kept": {"max_tokens": 16, "stop": [" River"], "no_stop_trim": True},
    "logprobs": {"max_tokens": 4, "logprobs": True, "top_logprobs": 3},
    "logprobs at a stop": {
        "max_tokens": 16,
        "logprobs": True,
        "top_logprobs": 1,
        "stop": [" River"],
    },
    "two choices": {"max_tokens": 4, "n": 2, "seed": 7},
    "a tool, any": {"max_tokens": 60, "tools": [WEATHER, CLOCK], "tool_choice": "required"},
    "a tool, named": {
        "max_tokens": 60,
        "tools": [WEATHER, CLOCK],
        "tool_choice": {"type": "function", "function": {"name": "get_time"}},
    },
    "a tool, by itself": {"max_tokens": 80, "tools": [CLOCK], "regex": CALL},
    "a tool, not called": {"max_tokens": 6, "tools": [CLOCK]},
    "a schema": {
        "max_tokens": 40,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
    },
    "reasoning": {"max_tokens": 40, "regex": THOUGHT},
    "reasoning, cut": {"max_tokens": 9, "regex": THOUGHT},
    "reasoning, together": {"max_tokens": 40, "regex": THOUGHT, "separate_reasoning": False},
    "reasoning, at once": {"max_tokens": 40, "regex": THOUGHT, "stream_reasoning": False},
}
TEXT: dict[str, Json] = {
    "plain": {"max_tokens": 6, "prompt": "The Nile is"},
    "prompts": {"max_tokens": 4, "prompt": ["The Nile is", "Paris is the"]},
    "choices of prompts": {"max_tokens": 3, "n": 2, "prompt": ["The Nile is", "Paris is the"]},
    "echo": {"max_tokens": 4, "prompt": "The Nile is", "echo": True},
    "logprobs": {"max_tokens": 4, "prompt": "The Nile is", "logprobs": 2},
    "echo with logprobs": {"max_tokens": 3, "prompt": "The Nile is", "logprobs": 2, "echo": True},
    "stop string": {"max_tokens": 16, "prompt": "The Nile is", "stop": ["vast"]},
}


def meaning(answer: Json) -> Json:
    """What of an answer must agree, as one flat mapping: not its ids, its time, what was cached."""
    usage = answer["usage"]
    details = usage.get("completion_tokens_details") or {}
    reasoning = details.get("reasoning_tokens") or usage.get("reasoning_tokens") or 0
    choices = [
        {
            "index": choice["index"],
            "text": choice.get("text"),
            "message": said(choice["message"]) if "message" in choice else None,
            "logprobs": choice["logprobs"],
            "finish_reason": choice["finish_reason"],
            "matched_stop": choice["matched_stop"],
        }
        for choice in answer["choices"]
    ]
    counts = [usage[f"{kind}_tokens"] for kind in ("prompt", "completion", "total")]
    return dict(leaves({"choices": choices, "counts": counts, "reasoning": reasoning}))


def said(message: Json) -> Json:
    """A message, where null and nothing are the same."""
    calls = [
        {"index": index, "type": call["type"], **call["function"]}
        for index, call in enumerate(message.get("tool_calls") or ())
    ]
    return {
        "role": message["role"],
        "content": message["content"] or "",
        "reasoning": message.get("reasoning_content") or "",
        "calls": calls,
    }


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in it, by its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def both(behind: Behind, path: str, body: Json) -> tuple[Json, Json]:
    """The engine's answer, the gateway's."""
    sent = {"model": behind.weir.model, "temperature": 0, **body}
    reply = behind.weir.post(sent, path=path)
    assert reply.status == 200, reply.raw
    return behind.engine.post(path, sent), reply.json


@pytest.mark.parametrize("name", CHAT)
def test_a_chat_answer_means_the_engines_own(main: Behind, name: str) -> None:
    """Text, finish, stop, log probabilities, tool calls, reasoning and counts."""
    messages = [{"role": "user", "content": "Name three rivers."}]
    engines, ours = both(main, "/v1/chat/completions", {"messages": messages, **CHAT[name]})
    assert meaning(ours) == pytest.approx(meaning(engines), abs=1e-3)


@pytest.mark.parametrize("name", TEXT)
def test_a_text_answer_means_the_engines_own(main: Behind, name: str) -> None:
    """Every prompt's every choice in its place, echo and log probabilities included."""
    engines, ours = both(main, "/v1/completions", TEXT[name])
    assert meaning(ours) == pytest.approx(meaning(engines), abs=1e-3)


def test_the_cases_show_what_they_are_named_for(main: Behind) -> None:
    """Two answers without reasoning would agree as well."""
    messages = [{"role": "user", "content": "Name three rivers."}]
    for name, field in (("reasoning", "reasoning_content"), ("a tool, by itself", "tool_calls")):
        body = {"model": main.weir.model, "temperature": 0, "messages": messages, **CHAT[name]}
        assert main.weir.post(body).json["choices"][0]["message"][field]

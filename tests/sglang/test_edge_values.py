"""Every value that the gateway lets through, at its edge: the engine lives, for all tenants."""

from typing import Any

import pytest
from sglang_server import Behind

INT32_MAX = 2**31 - 1
EDGES: list[dict[str, Any]] = [
    {"top_k": INT32_MAX},
    {"top_k": -1},
    {"top_k": 1},
    {"stop_token_ids": [INT32_MAX, 0]},
    {"min_tokens": 6},
    {"min_tokens": INT32_MAX},
    {"seed": 2**63 - 1},
    {"seed": -(2**63)},
    {"temperature": 1e-300},
    {"temperature": 2},
    {"top_p": 1e-300},
    {"min_p": 1},
    {"min_p": 1e-300},
    {"repetition_penalty": 0.01},
    {"repetition_penalty": 2},
    {"frequency_penalty": 2, "presence_penalty": 2},
    {"frequency_penalty": -2, "presence_penalty": -2},
    {"logit_bias": {"0": 100, "5": -100}},
    {"logit_bias": {str(token): 100 for token in range(1000)}},
    {"logprobs": True, "top_logprobs": 20},
    {"stop": ["x" * 1000] * 4},
    {"stop": ["", "a"]},
    {"n": 8},
    {"regex": "(a{1,100}){1,100}"},
    {"ebnf": "root ::= root"},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}},
    {"chat_template_kwargs": {"enable_thinking": True, "thinking_budget": INT32_MAX}},
    {"reasoning_effort": "high"},
    {"continue_final_message": True},
]
NULLS = (
    *("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop", "logprobs"),
    *("top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "response_format", "top_k"),
    *("min_p", "min_tokens", "repetition_penalty", "stop_token_ids", "skip_special_tokens"),
    *("no_stop_trim", "separate_reasoning", "stream_reasoning", "continue_final_message", "n"),
    *("logit_bias", "regex", "ebnf", "chat_template_kwargs", "max_completion_tokens", "user"),
)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: str(edge)[:40])
def test_no_value_at_an_edge_ends_the_engine(main: Behind, edge: dict[str, Any]) -> None:
    """Served, or refused as the request's fault; the next request is served."""
    reply = main.weir.chat(max_tokens=6, **edge)
    assert reply.status in (200, 400), reply.raw
    assert main.engine.process.poll() is None, main.engine.tail
    assert main.weir.chat(max_tokens=1).status == 200, main.engine.tail


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_null_is_as_if_it_were_not_there(main: Behind, path: str) -> None:
    """SDKs send them."""
    nulls: dict[str, Any] = dict.fromkeys(NULLS)
    asked = main.weir.body(**nulls)
    if path == "/v1/completions":
        only_chat = {"messages", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls"}
        only_chat |= {"response_format", "separate_reasoning", "stream_reasoning"}
        only_chat |= {"continue_final_message", "chat_template_kwargs", "max_completion_tokens"}
        asked = {name: value for name, value in asked.items() if name not in only_chat}
        asked |= {"prompt": "Rivers are", "echo": None, "suffix": None, "best_of": None}
    reply = main.weir.post(asked, path=path)
    assert reply.status == 200, reply.raw

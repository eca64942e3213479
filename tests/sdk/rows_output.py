"""Rows: sampling, log probabilities, structure, tools."""

from sdk import checks
from sdk.rows import CHAT, NOT_SENT, NoEffect, Passes, Refused, Row

_SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["big", "small"]}, "wet": {"enum": [True, False]}},
    "required": ["size", "wet"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "river_length",
        "description": "The length of a river",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"river": {"type": "string", "enum": ["Nile", "Rhine"]}},
            "required": ["river"],
            "additionalProperties": False,
        },
    },
}
_ONE_TOOL = {"type": "function", "function": {"name": "river_length"}}
_NO_TOOLS = (Refused("tools"), Refused("tools"))

ROWS = (
    Row(
        "temperature 0",
        "`temperature=0`: the same text again",
        {"temperature": 0},
        check=checks.same_text,
        variants=({}, {}),
    ),
    Row(
        "seed",
        "`seed` at a temperature: the same seed gives the same text, another another",
        {"temperature": 1, "seed": 7, "max_tokens": 16},
        local=Refused("seed", note="its library has one stream of chance"),
        sglang=NoEffect("it needs `--enable-deterministic-inference`"),
        check=checks.third_differs,
        variants=({}, {}, {"seed": 8}),
    ),
    Row(
        "seed, temperature 0",
        "`seed` with `temperature=0`",
        {"temperature": 0, "seed": 7},
        check=checks.same_text,
        variants=({}, {}),
    ),
    Row(
        "penalties",
        "`frequency_penalty`, `presence_penalty`",
        {"temperature": 0, "frequency_penalty": 2, "presence_penalty": 2, "max_tokens": 16},
        simulated=Refused("frequency_penalty"),
        check=checks.differs,
        variants=({}, {"frequency_penalty": None, "presence_penalty": None}),
    ),
    Row(
        "logit_bias",
        "`logit_bias`",
        {"temperature": 0, "logit_bias": {"260": 100}},
        simulated=Refused("logit_bias"),
        hosted="503 `no_worker`: its keys are tokens of our model",
        check=checks.differs,
        variants=({}, {"logit_bias": None}),
    ),
    Row(
        "logprobs",
        "`logprobs=True`",
        {"logprobs": True},
        simulated=Refused("logprobs"),
        check=checks.logprobs(0),
    ),
    Row(
        "top_logprobs",
        "`logprobs=True, top_logprobs=2`",
        {"logprobs": True, "top_logprobs": 2},
        simulated=Refused("logprobs"),
        check=checks.logprobs(2),
    ),
    Row(
        "top_logprobs alone",
        "`top_logprobs` without `logprobs`",
        {"top_logprobs": 2},
        *(Refused("top_logprobs", "invalid_value"),) * 3,
        hosted="refused",
    ),
    Row(
        "completions logprobs",
        "`completions.create(logprobs=1)`",
        {"logprobs": 1},
        local=Refused("logprobs"),
        simulated=Refused("logprobs"),
        check=checks.text_logprobs,
        kind="completions",
    ),
    Row(
        "echo",
        "`completions.create(echo=True)`",
        {"echo": True},
        local=Refused("echo"),
        simulated=Refused("echo"),
        hosted=NOT_SENT,
        kind="completions",
        check=checks.matches(r"The river.+"),
    ),
    Row(
        "json_object",
        '`response_format={"type": "json_object"}`',
        {"response_format": {"type": "json_object"}, "max_tokens": 200, "temperature": 0}
        | {"messages": [{"role": "user", "content": 'Answer only: {"river": "Nile"}'}]},
        simulated=Refused("response_format"),
        check=checks.json_object,
    ),
    Row(
        "json_schema",
        '`response_format={"type": "json_schema", ...}`',
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "river", "strict": True, "schema": _SCHEMA},
            },
            "max_tokens": 60,
        },
        simulated=Refused("response_format"),
        check=checks.json_like(_SCHEMA),
    ),
    Row(
        "tools",
        "`tools=[...]`, `tool_choice` left out",
        {"tools": [_TOOL]},
        *_NO_TOOLS,
        sglang=Passes("calls only with `--tool-call-parser`", checks.answered),
    ),
    Row(
        "tool_choice none",
        '`tools=[...], tool_choice="none"`',
        {"tools": [_TOOL], "tool_choice": "none"},
        *_NO_TOOLS,
        check=checks.not_called,
    ),
    Row(
        "tool_choice required",
        '`tools=[...], tool_choice="required"`',
        {"tools": [_TOOL], "tool_choice": "required", "max_tokens": 120, "temperature": 0},
        *_NO_TOOLS,
        check=checks.called("river_length"),
    ),
    Row(
        "tool_choice by name",
        '`tools=[...], tool_choice={"type": "function", ...}`',
        {"tools": [_TOOL], "tool_choice": _ONE_TOOL, "max_tokens": 120, "temperature": 0},
        *_NO_TOOLS,
        check=checks.called("river_length"),
    ),
    Row(
        "tool messages",
        "a conversation with `tool_calls` and the tool's answer in it",
        {
            "messages": [
                *CHAT["messages"],
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "river_length", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "6650 km"},
            ]
        },
        local=Refused("messages", "invalid_value"),
        simulated=Refused("messages", "invalid_value"),
    ),
    Row(
        "reasoning_effort",
        '`reasoning_effort="none"`',
        {"reasoning_effort": "none"},
        local=Passes("any other value is refused"),
        simulated=Passes("any other value is refused"),
        sglang=Passes("another value has effect where the model's template reads it"),
    ),
)

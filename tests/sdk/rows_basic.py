"""Rows: endpoints, streaming, usage, maxima, stops, choices, messages, headers, classes."""

from sdk import checks
from sdk.rows import Passes, Refused, Row

_NO_OPTIONS = {"stream_options": None}

ROWS = (
    Row(
        "chat, whole",
        "`chat.completions.create(...)`",
        check=checks.whole,
        forms=("whole",),
    ),
    Row(
        "chat, streamed",
        "`stream=True`; without `include_usage` no chunk carries usage",
        _NO_OPTIONS,
        check=checks.no_usage,
        forms=("stream",),
    ),
    Row(
        "include_usage on",
        '`stream_options={"include_usage": True}`: one more chunk, the last',
        check=checks.usage_last,
        forms=("stream",),
    ),
    Row(
        "include_usage off",
        '`stream_options={"include_usage": False}`: no more chunk',
        {"stream_options": {"include_usage": False}},
        check=checks.no_usage,
        forms=("stream",),
    ),
    Row(
        "stream_options without stream",
        "`stream_options` where `stream` is not set",
        {"stream_options": {"include_usage": True}},
        *(Refused("stream_options", "invalid_value"),) * 3,
        hosted="refused",
        forms=("whole",),
    ),
    Row(
        "include_obfuscation",
        '`stream_options={"include_obfuscation": False}`; true is refused',
        {"stream_options": {"include_obfuscation": False}},
        check=checks.no_usage,
        forms=("stream",),
    ),
    Row("max_tokens", "`max_tokens`", {"max_tokens": 5}, check=checks.cut_at(5)),
    Row(
        "max_completion_tokens",
        "`max_completion_tokens`",
        {"max_tokens": None, "max_completion_tokens": 5},
        check=checks.cut_at(5),
    ),
    Row(
        "max_tokens 0",
        "`max_tokens=0`",
        {"max_tokens": 0},
        *(Refused("max_tokens", "invalid_value"),) * 3,
        hosted="refused",
    ),
    Row(
        "stop",
        '`stop=" "`: the text ends before it',
        {"stop": " "},
        check=checks.stopped_before(" "),
    ),
    Row(
        "stop, a list",
        "`stop=[...]`",
        {"stop": ["\u2603", " "]},
        check=checks.stopped_before(" "),
    ),
    Row(
        "n",
        "`n=2`: two choices by index, the prompt counted once",
        {"n": 2, "max_tokens": 4},
        check=checks.choices(2),
        variants=({}, {"n": 1}),
    ),
    Row(
        "completions, one prompt",
        "`completions.create(prompt=str)`",
        kind="completions",
    ),
    Row(
        "completions, a list",
        "`completions.create(prompt=[str, str], n=2)`: four choices, each prompt counted once",
        {"prompt": ["The river", "The river"], "n": 2, "max_tokens": 4},
        check=checks.choices(4, prompts=2),
        kind="completions",
        variants=({}, {"prompt": "The river", "n": 1}),
    ),
    Row(
        "completions, token ids",
        "`completions.create(prompt=[int, ...])`",
        {"prompt": [1, 2, 3]},
        *(Refused("prompt[0]", "invalid_value"),) * 3,
        hosted="refused",
        kind="completions",
    ),
    Row(
        "models.list",
        "`models.list()`: the models that the key may use",
        check=checks.lists_models,
        hosted="the same list",
        kind="models",
        forms=("whole",),
    ),
    Row(
        "developer message",
        '`{"role": "developer", ...}` is a system message',
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": "Tell me of rivers."},
            ]
        },
    ),
    Row(
        "nulls",
        "`frequency_penalty=None, logprobs=None, stop=None, ...`: as if they were not set",
        dict.fromkeys(
            ("frequency_penalty", "presence_penalty", "logprobs", "seed", "stop", "temperature")
        ),
    ),
    Row(
        "text parts",
        '`content=[{"type": "text", "text": ...}]`',
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Rivers?"}]}]},
    ),
    Row(
        "an answer sent back",
        "a conversation with an answer in it as it came, also from `parse`",
        {
            "messages": [
                {"role": "user", "content": "Rivers?"},
                {
                    "role": "assistant",
                    "content": '{"river": "Nile"}',
                    "refusal": None,
                    "annotations": [],
                    "audio": None,
                    "function_call": None,
                    "tool_calls": None,
                    "reasoning_content": None,
                    "parsed": {"river": "Nile"},
                },
                {"role": "user", "content": "Which?"},
            ]
        },
    ),
    Row(
        "service_tier flex",
        '`service_tier="flex"`: batch class',
        {"service_tier": "flex"},
        hosted="yes: it is not told",
    ),
    Row(
        "service_tier nonsense",
        "`service_tier` that OpenAI does not have",
        {"extra_body": {"service_tier": "express"}},
        *(Refused("service_tier", "invalid_value"),) * 3,
        hosted="refused",
    ),
    Row(
        "x-weir-class",
        '`extra_headers={"x-weir-class": "batch"}`: batch class',
        {"extra_headers": {"x-weir-class": "batch"}},
        hosted="yes: it is not told",
    ),
    Row(
        "x-weir-data-policy",
        '`extra_headers={"x-weir-data-policy": "self_hosted_only"}`: served here or not at all',
        {"extra_headers": {"x-weir-data-policy": "self_hosted_only"}},
        hosted="503 `no_worker`: never sent there",
    ),
    Row(
        "other headers",
        "`extra_headers` that Weir does not know, `Idempotency-Key` (ignored so far) among them",
        {"extra_headers": {"x-mine": "1", "idempotency-key": "k", "openai-organization": "o"}},
        Passes("not passed on"),
        Passes("not passed on"),
        Passes("not passed on"),
        hosted="not passed on",
    ),
    Row(
        "platform fields",
        "`user`, `metadata`, `store`, `safety_identifier`, `prompt_cache_key`: they steer OpenAI's "
        "own platform",
        {
            "user": "u",
            "metadata": {"a": "b"},
            "store": True,
            "safety_identifier": "s",
            "prompt_cache_key": "p",
        },
        Passes("accepted, not used"),
        Passes("accepted, not used"),
        Passes("accepted, not used"),
        hosted="not passed on",
    ),
)

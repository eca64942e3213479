"""Real bodies: what OpenAI's SDKs and SGLang's users send."""

from typing import Any

MODEL = "fuzzed"
CANARY = "the-heron-lands-at-noon"
"""In every prompt; no error and no log may show it."""
AT_LENGTH = "at length"
"""In a prompt it makes the engine answer up to the maximum."""
SECRET = "the-otter-swims-by-night"
"""As password and as workers' API key; no answer and no log may show it."""
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"
    "YAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["place"],
        },
    },
}


def _chat(*contents: Any, **fields: Any) -> dict[str, Any]:
    turns = ("user", "assistant")
    messages = [
        {"role": turns[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return {"model": MODEL, "messages": messages, "max_tokens": 8, **fields}


def _prompt(prompt: Any, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": prompt, "max_tokens": 8, **fields}


_ASK = f"Tell me of rivers. {CANARY}"
_SYSTEM = {"role": "system", "content": f"Be brief. {CANARY}"}

_ANSWER: dict[str, Any] = {
    "role": "assistant", "content": "{}", "refusal": None, "annotations": [], "audio": None,
    "function_call": None, "tool_calls": None, "reasoning_content": None, "parsed": {"a": 1},
}  # fmt: skip
"""An answer as a client sends it back."""

CHATS: tuple[dict[str, Any], ...] = (
    _chat(_ASK),
    _chat(_ASK, stream=True),
    _chat(_ASK, stream=True, stream_options={"include_usage": True}),
    _chat(_ASK, "Which?", "All.", temperature=0.7, top_p=0.9, seed=7),
    {"model": MODEL, "messages": [_SYSTEM, {"role": "user", "content": _ASK}], "max_tokens": 8},
    _chat(_ASK, tools=[TOOL], tool_choice="auto", parallel_tool_calls=False),
    {
        "model": MODEL,
        "max_completion_tokens": 8,
        "tools": [TOOL],
        "messages": [
            {"role": "user", "content": _ASK},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"place": "Oslo"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        ],
    },
    _chat(
        [
            {"type": "text", "text": _ASK},
            {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        ]
    ),
    _chat(_ASK, response_format={"type": "json_object"}),
    _chat(
        _ASK,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "river", "schema": {"type": "object"}, "strict": True},
        },
    ),
    _chat(
        _ASK,
        response_format={
            "type": "structural_tag",
            "structures": [{"begin": "<a>", "schema": {"type": "object"}, "end": "</a>"}],
            "triggers": ["<a>"],
        },
    ),
    _chat(
        _ASK, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "get_weather"}}
    ),
    {
        "model": MODEL,
        "max_tokens": 8,
        "messages": [
            {"role": "user", "content": _ASK},
            _ANSWER,
            {"role": "user", "content": "So?"},
        ],
    },
    _chat(
        [
            {"type": "text", "text": _ASK, "cache_control": {"type": "ephemeral"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "fps": 1}},
        ],
        [{"type": "thinking", "thinking": "Well."}, {"type": "text", "text": "Yes."}],
    ),
    _chat(_ASK, logprobs=True, top_logprobs=3),
    _chat(_ASK, n=3, stream=True),
    _chat(_ASK, n=2),
    _chat(_ASK, stop=["\n", "END"], frequency_penalty=0.5, presence_penalty=-0.5),
    _chat(_ASK, logit_bias={"50": -100, "60": 1.5}),
    _chat(_ASK, top_k=20, min_p=0.05, repetition_penalty=1.1, min_tokens=1),
    _chat(_ASK, regex="[a-z ]+", stop_token_ids=[2], skip_special_tokens=True),
    _chat(_ASK, chat_template_kwargs={"enable_thinking": False}, separate_reasoning=True),
    _chat(_ASK, "The Nile", continue_final_message=True),
    _chat(
        _ASK,
        user="u-1",
        metadata={"team": "a"},
        store=False,
        service_tier="flex",
        safety_identifier="s",
        prompt_cache_key="p",
    ),
    _chat(_ASK, reasoning_effort="low", stream=True, stream_options={"include_usage": False}),
    {"model": MODEL, "messages": [{"role": "user", "content": _ASK, "name": "ann"}]},
)

COMPLETIONS: tuple[dict[str, Any], ...] = (
    _prompt(_ASK),
    _prompt(_ASK, stream=True, stream_options={"include_usage": True}),
    _prompt([_ASK, f"And of lakes? {CANARY}"]),
    _prompt([_ASK, "And of lakes?"], n=2, stream=True),
    _prompt(_ASK, logprobs=2, echo=False, best_of=1),
    _prompt(_ASK, suffix=" End.", stop="\n"),
    _prompt(_ASK, ebnf='root ::= "a"', seed=1, temperature=0),
    _prompt(_ASK, json_schema='{"type": "object"}', no_stop_trim=True),
    {"model": MODEL, "prompt": _ASK},
)

PRIVILEGED: dict[str, Any] = {
    "rid": "priv-rid",
    "priority": 987654,
    "extra_key": "priv-extra",
    "cache_salt": "priv-salt",
    "data_parallel_rank": 3,
    "routed_dp_rank": 3,
    "bootstrap_host": "10.9.9.9",
    "bootstrap_port": 9,
    "bootstrap_room": 9,
    "lora_path": "priv-lora",
    "session_id": "priv-session",
    "session_params": {"id": "priv"},
    "input_ids": [999_999_999],
    "custom_logit_processor": "priv-code",
    "custom_params": {"a": 1},
    "custom_labels": {"a": "b"},
    "return_hidden_states": True,
    "return_routed_experts": True,
    "mm_processor_kwargs": {"a": 1},
    "stop_regex": "(a+)+$",
    "ignore_eos": True,
    "task": "priv-task",
    "chat_template": "{{ priv }}",
    "return_token_ids": True,
    "return_meta_info": True,
}
"""Engine controls with values that no gateway would choose."""

NESTED: dict[str, Any] = {
    **{name: PRIVILEGED[name] for name in ("rid", "cache_salt", "input_ids", "session_id")},
    "content_hash": "priv-hash",
    "precomputed": {"a": "priv"},
    "max_tokens_per_frame": 9_999,
    "max_dynamic_patch": 9_999,
    "image_url": {"url": PIXEL},
    "prefix": True,
    "tools": [TOOL],
    "defer_loading": True,
    "key_order": ["priv"],
}
"""What may stand in no message, part, medium, tool or form."""

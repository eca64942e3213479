"""What an engine may be sent, written out: the fuzzer's own lists, none of them the gateway's.

From SGLang 0.5.23's OpenAPI document, less the controls that are the gateway's alone (which are
named too), and OpenAI's reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Leaf:
    """A value without objects in it."""


@dataclass(frozen=True)
class Open:
    """Any JSON: a schema, a grammar, a function's arguments."""


@dataclass(frozen=True)
class Kinds:
    """An object whose `type` says which fields it has."""

    of: Mapping[str, "Shape"]


Shape = Leaf | Open | Kinds | Mapping[str, "Shape"]
"""A mapping names an object's fields. A list has the shape of its members."""
LEAF, OPEN = Leaf(), Open()


def _leaves(*names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, LEAF)


_HINTS: dict[str, Shape] = {
    "cache_control": _leaves("type", "ttl"),
    "prompt_cache_breakpoint": _leaves("mode", "ttl"),
}
_PART = Kinds(
    {
        "text": {**_leaves("type", "text"), **_HINTS},
        "thinking": {**_leaves("type", "thinking", "text"), **_HINTS},
        "reasoning": {**_leaves("type", "thinking", "text"), **_HINTS},
        "image_url": {**_leaves("type"), "image_url": _leaves("url", "detail"), **_HINTS},
        "video_url": {
            **_leaves("type"), "video_url": _leaves("url", "fps", "max_frames"), **_HINTS,
        },
        "audio_url": {**_leaves("type"), "audio_url": _leaves("url"), **_HINTS},
        "input_audio": {**_leaves("type"), "input_audio": _leaves("data", "format"), **_HINTS},
    }
)  # fmt: skip
_MESSAGE: Shape = {
    **_leaves(
        "role", "name", "tool_call_id", "reasoning_content", "reasoning", "refusal", "audio",
        "function_call",
    ),
    "content": _PART,
    "tool_calls": {
        **_leaves("id", "index", "type"),
        "function": {"name": LEAF, "arguments": OPEN},
    },
}  # fmt: skip
_FUNCTION: Shape = {**_leaves("name", "description", "strict"), "parameters": OPEN}
_FORM = Kinds(
    {
        "text": _leaves("type"),
        "json_object": _leaves("type"),
        "json_schema": {
            **_leaves("type"),
            "json_schema": {**_leaves("name", "description", "strict"), "schema": OPEN},
        },
        "structural_tag": {
            **_leaves("type", "triggers", "at_least_one"),
            "structures": {**_leaves("begin", "end"), "schema": OPEN},
            "format": OPEN,
        },
    }
)
_BOTH: dict[str, Shape] = {
    **_leaves(
        "model", "stream", "max_tokens", "rid", "cache_salt", "priority", "temperature", "top_p",
        "frequency_penalty", "presence_penalty", "seed", "stop", "logprobs", "top_k", "min_p",
        "min_tokens", "repetition_penalty", "regex", "ebnf", "stop_token_ids",
        "skip_special_tokens", "no_stop_trim",
    ),
    "stream_options": _leaves("include_usage", "continuous_usage_stats"),
    "logit_bias": OPEN,
}  # fmt: skip
CHAT: Shape = {
    **_BOTH,
    **_leaves(
        "top_logprobs", "parallel_tool_calls", "reasoning_effort", "separate_reasoning",
        "stream_reasoning", "continue_final_message",
    ),
    "messages": _MESSAGE,
    "tools": {"type": LEAF, "function": _FUNCTION},
    "tool_choice": {"type": LEAF, "function": _leaves("name")},
    "response_format": _FORM,
    "chat_template_kwargs": _leaves("enable_thinking", "thinking", "thinking_budget"),
}  # fmt: skip
COMPLETION: Shape = {**_BOTH, **_leaves("prompt", "echo", "suffix", "json_schema")}
SHAPES: dict[str, Shape] = {"/v1/chat/completions": CHAT, "/v1/completions": COMPLETION}

GATEWAYS_OWN = frozenset({"rid", "cache_salt", "priority"})
"""Controls that the gateway sets, at the top of a body and nowhere else."""
CONTROLS = GATEWAYS_OWN | {
    "extra_key", "data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank",
    "bootstrap_host", "bootstrap_port", "bootstrap_room", "lora_path", "session_id",
    "session_params", "input_ids", "custom_logit_processor", "custom_params", "custom_labels",
    "return_hidden_states", "return_routed_experts", "routed_experts_start_len",
    "return_cached_tokens_details", "return_spec_tokens_details", "return_prompt_token_ids",
    "return_token_ids", "return_meta_info", "return_input_ids_in_sglext",
    "return_output_ids_in_sglext", "return_sampling_mask", "sampling_logprobs_mode",
    "return_flat_raw_output_top_logprobs", "return_flat_raw_top_logprobs_b64", "images_config",
    "video_config", "mm_processor_kwargs", "max_dynamic_patch", "min_dynamic_patch",
    "use_audio_in_video", "watermark", "stop_regex", "ignore_eos", "task", "n", "best_of",
    "max_completion_tokens", "user", "chat_template",
}  # fmt: skip
"""What a chat or a completion of SGLang takes and no tenant may set, or a choice of the gateway's
own; `chat_template` is one of the template's."""
MEDIA_CONTROLS = frozenset({
    "content_hash", "precomputed", "max_dynamic_patch", "min_dynamic_patch", "max_long_side_pixel",
    "max_tokens_per_frame", "max_image_tokens", "modalities", "prefix", "phase", "defer_loading",
    "key_order",
})  # fmt: skip
"""Fields of SGLang's messages, parts, media and tools that are no tenant's."""


def strangers(value: Any, shape: Shape, path: str = "") -> list[str]:
    """Paths of what `value` has and its shape has not."""
    if isinstance(value, list):
        return [each for inner in value for each in strangers(inner, shape, f"{path}[]")]
    if isinstance(shape, Open) or not isinstance(value, dict):
        return []  # nothing can be hidden in what is no object
    if isinstance(shape, Leaf):
        return [f"{path} is an object"]
    if isinstance(shape, Kinds):
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in shape.of:
            return [f"{path} is of an unknown kind"]
        return strangers(value, shape.of[kind], path)
    found: list[str] = []
    for name, inner in value.items():
        here = f"{path}.{name}" if path else name
        found += strangers(inner, shape[name], here) if name in shape else [here]
    return found

"""Which fields of a request go upstream, which the gateway reads itself, which it refuses.

Sources: OpenAI's API reference for chat completions and completions; SGLang 0.5.23's OpenAPI for
its extensions. The bodies of `wire/request.py` name each endpoint's own, and what is in none of
them is refused: nothing is ignored silently.
"""

_SAMPLING = frozenset({
    "temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias", "seed", "stop",
    "logprobs",
    # SGLang's extensions that are the tenant's to use.
    "top_k", "min_p", "min_tokens", "repetition_penalty", "regex", "ebnf", "stop_token_ids",
    "skip_special_tokens", "no_stop_trim",
})  # fmt: skip

CHAT_FIELDS = _SAMPLING | {
    "messages", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "response_format",
    "reasoning_effort", "separate_reasoning", "stream_reasoning", "chat_template_kwargs",
    "continue_final_message",
}  # fmt: skip
"""Chat fields that are passed on as they came."""

COMPLETION_FIELDS = _SAMPLING | {"prompt", "echo", "suffix", "json_schema"}
"""Completion fields that are passed on as they came. SGLang's chat has no `json_schema` and would
drop it unread; there it is `response_format`."""

SGLANG_EXTENSIONS = frozenset({
    "top_k", "min_p", "min_tokens", "repetition_penalty", "regex", "ebnf", "json_schema",
    "stop_token_ids", "skip_special_tokens", "no_stop_trim", "separate_reasoning",
    "stream_reasoning", "chat_template_kwargs", "continue_final_message",
})  # fmt: skip
"""Those of them that are SGLang's own. A hosted provider is sent one only where it is known to
understand it."""

GATEWAY_FIELDS = frozenset({
    "model", "stream", "stream_options", "n", "best_of", "max_tokens", "max_completion_tokens",
    "service_tier",
    # Accepted because OpenAI's SDKs send them; they steer OpenAI's own platform, not an answer.
    "user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
})  # fmt: skip
"""Fields that the gateway reads, or that have no meaning for an engine."""

PRIVILEGED_FIELDS = frozenset({
    "rid", "priority", "extra_key", "cache_salt", "data_parallel_rank", "routed_dp_rank",
    "disagg_prefill_dp_rank", "bootstrap_host", "bootstrap_port", "bootstrap_room", "lora_path",
    "session_id", "session_params", "input_ids", "custom_logit_processor", "custom_params",
    "custom_labels", "return_hidden_states", "return_routed_experts", "images_config",
    "video_config", "mm_processor_kwargs", "watermark", "stop_regex", "ignore_eos", "task",
})  # fmt: skip
"""Engine controls that are the gateway's alone."""

TEMPLATE_SWITCHES = frozenset({"enable_thinking", "thinking", "thinking_budget"})
"""Keys of `chat_template_kwargs` that only switch what a model's own template offers. Others reach
the template engine itself (`chat_template` is a program: GHSA-6fvq-23cw-5628)."""

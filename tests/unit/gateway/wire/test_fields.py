from gateway.wire.bodies import ChatBody, CompletionBody
from gateway.wire.fields import (
    CHAT_FIELDS,
    COMPLETION_FIELDS,
    GATEWAY_FIELDS,
    PRIVILEGED_FIELDS,
    SGLANG_EXTENSIONS,
)
from gateway.wire.hosted_body import OPENAI_FIELDS

# sglang 0.5.23's chat request: what is not the tenant's to set.
NOT_THE_TENANTS = {
    "rid", "priority", "extra_key", "cache_salt", "data_parallel_rank", "routed_dp_rank",
    "disagg_prefill_dp_rank", "bootstrap_host", "bootstrap_port", "bootstrap_room", "lora_path",
    "session_id", "session_params", "input_ids", "custom_logit_processor", "custom_params",
    "custom_labels", "return_hidden_states", "return_routed_experts", "images_config",
    "video_config", "mm_processor_kwargs", "watermark", "stop_regex", "ignore_eos", "task",
}  # fmt: skip


def test_no_engine_control_goes_upstream() -> None:
    """INV-12: what is the gateway's alone is never among the fields that are passed on."""
    assert NOT_THE_TENANTS <= PRIVILEGED_FIELDS
    assert not PRIVILEGED_FIELDS & (CHAT_FIELDS | COMPLETION_FIELDS | GATEWAY_FIELDS)


def test_every_field_of_a_body_is_passed_on_or_read() -> None:
    """A field that a body may have is in exactly one set, and so is never dropped unread."""
    chat, completion = (set(body.__struct_fields__) for body in (ChatBody, CompletionBody))
    assert chat == CHAT_FIELDS | (GATEWAY_FIELDS - {"best_of"})
    assert completion == COMPLETION_FIELDS | (GATEWAY_FIELDS - {"max_completion_tokens"})


def test_what_the_gateway_decides_is_not_passed_on() -> None:
    """R03: a maximum, a stream or a number of choices reaches the engine only as the gateway's."""
    assert not GATEWAY_FIELDS & (CHAT_FIELDS | COMPLETION_FIELDS)
    assert {"n", "best_of", "stream", "stream_options", "max_tokens"} <= GATEWAY_FIELDS


def test_sglangs_sampling_is_the_tenants() -> None:
    """The extensions that are useful to tenants go upstream from both endpoints."""
    useful = {"top_k", "min_p", "min_tokens", "repetition_penalty", "regex", "ebnf"}
    assert useful | {"stop_token_ids"} <= CHAT_FIELDS & COMPLETION_FIELDS
    assert {"json_schema", "add_generation_prompt"} & CHAT_FIELDS == set(), "SGLang drops them"


def test_an_extension_is_a_field_that_openai_does_not_know() -> None:
    """What a provider may be said to understand is passed on at all, and is not OpenAI's."""
    assert SGLANG_EXTENSIONS <= CHAT_FIELDS | COMPLETION_FIELDS
    openais = OPENAI_FIELDS | {"logit_bias", "echo"}
    assert (CHAT_FIELDS | COMPLETION_FIELDS) - openais == SGLANG_EXTENSIONS

"""Request bodies as they arrive. Fields that are not named here are ignored, as SGLang does."""

from typing import Annotated, TypeVar

import msgspec

from backend.sglang_http.refusals import Refused

Count = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
JsonObject = dict[str, msgspec.Raw]


class ContentPart(msgspec.Struct, frozen=True):
    """One part of a message's content; only text can be served."""

    type: str
    text: str = ""


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of a chat."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: list[msgspec.Raw] | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    """Which usage a stream carries."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class ResponseFormat(msgspec.Struct, frozen=True):
    """Constrained output."""

    type: str
    json_schema: JsonObject | None = None


class SharedFields(msgspec.Struct, frozen=True, kw_only=True):
    """What chat and text completions have in common."""

    model: str = "default"
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    max_tokens: Count | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Count | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: Count | None = None
    logit_bias: dict[str, float] | None = None
    ignore_eos: bool | None = False
    regex: str | None = None
    json_schema: str | None = None
    response_format: ResponseFormat | None = None
    rid: str | None = None
    cache_salt: str | None = None
    extra_key: str | None = None
    priority: Count | None = None
    # What no engine here carries out: refused unless neutral.
    ebnf: object = None
    min_tokens: Count | None = 0
    stop_token_ids: list[Count] | None = None
    stop_regex: object = None
    no_stop_trim: bool | None = False
    skip_special_tokens: bool | None = True
    lora_path: object = None
    session_params: object = None
    custom_logit_processor: object = None
    custom_params: object = None
    return_hidden_states: object = False
    return_token_ids: bool | None = False
    return_meta_info: bool | None = False
    return_routed_experts: object = False
    return_cached_tokens_details: object = False
    return_spec_tokens_details: object = False
    watermark: object = None
    images_config: object = None
    mm_processor_kwargs: object = None


class ChatBody(SharedFields, frozen=True, kw_only=True):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = False
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    continue_final_message: bool | None = False
    tools: list[msgspec.Raw] | None = None
    tool_choice: object = None
    reasoning_effort: object = None
    input_ids: object = None
    chat_template_kwargs: JsonObject | None = None
    return_prompt_token_ids: object = False
    return_input_ids_in_sglext: object = False
    return_output_ids_in_sglext: object = False
    return_sampling_mask: object = False
    task: object = None
    video_config: object = None


class CompletionBody(SharedFields, frozen=True, kw_only=True):
    """POST /v1/completions."""

    prompt: str | list[str | int | list[int]]
    logprobs: Count | None = None
    echo: bool | None = False
    suffix: str | None = None
    best_of: Count | None = None


class GenerateSampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sampling_params` of POST /generate, in SGLang's order: its refusal lists them."""

    max_new_tokens: Count | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[Count] | None = None
    stop_regex: object = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Count | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    min_new_tokens: Count | None = 0
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = 1
    json_schema: str | None = None
    regex: str | None = None
    ebnf: object = None
    structural_tag: object = None
    ignore_eos: bool | None = False
    skip_special_tokens: bool | None = True
    spaces_between_special_tokens: bool | None = True
    no_stop_trim: bool | None = False
    stream_interval: object = None
    logit_bias: dict[str, float] | None = None
    sampling_seed: Count | None = None
    custom_params: object = None
    beam_width: object = None
    watermark: object = None
    choice: object = None


class GenerateBody(msgspec.Struct, frozen=True, kw_only=True):
    """POST /generate."""

    text: str | list[str] | None = None
    input_ids: list[int | list[int]] | None = None
    sampling_params: msgspec.Raw = msgspec.Raw(b"null")
    rid: str | list[str] | None = None
    stream: bool | None = False
    priority: Count | None = None
    cache_salt: str | None = None
    extra_key: str | None = None
    return_logprob: bool | None = False
    # What no engine here carries out: refused unless neutral.
    input_embeds: object = None
    image_data: object = None
    video_data: object = None
    audio_data: object = None
    logprob_start_len: object = None
    top_logprobs_num: object = None
    token_ids_logprob: object = None
    return_sampling_mask: object = None
    return_hidden_states: object = False
    return_routed_experts: object = False
    return_indexer_topk: object = False
    return_entropy: object = False
    return_prompt_token_ids: object = False
    session_params: object = None
    lora_path: object = None
    lora_id: object = None
    custom_logit_processor: object = None
    max_thinking_tokens: object = None
    watermark: object = None
    images_config: object = None
    mm_processor_kwargs: object = None


class TokenizeBody(msgspec.Struct, frozen=True):
    """POST /v1/tokenize: a chat, or plain text."""

    messages: list[ChatMessage] | None = None
    prompt: str | list[str] | None = None
    tools: list[msgspec.Raw] | None = None
    continue_final_message: bool | None = False


class AbortBody(msgspec.Struct, frozen=True):
    """POST /abort_request."""

    rid: str | None = ""
    abort_all: bool | None = False


Body = TypeVar("Body")


def decode(raw: bytes, kind: type[Body]) -> Body:
    """Parse a body. Raises Refused (400) naming the field and the types, never the value."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(f"1 validation error: {error}", kind="Bad Request") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refused(
            "1 validation error: the body is not valid JSON", kind="Bad Request"
        ) from None
    except RecursionError:
        raise Refused("1 validation error: nested too deeply", kind="Bad Request") from None

"""The shapes of the answers below `/v1`, for the OpenAPI document: OpenAI's objects. An engine may
add fields of its own to choices and chunks."""

from typing import Any, Literal

import msgspec

from gateway.http.openapi_answers import ScopeUseAnswer


class ErrorDetail(msgspec.Struct, forbid_unknown_fields=True):
    """What failed. `type` and `code` are stable; `param` names the field that is at fault."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """OpenAI's error object; within a stream it is the last event, and no `[DONE]` follows."""

    error: ErrorDetail


class PromptTokensDetails(msgspec.Struct):
    """Of the prompt."""

    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct):
    """Of the output."""

    reasoning_tokens: int


class UsageAnswer(msgspec.Struct):
    """The engine's own count; `prompt_tokens_details` is null where it does not report it."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails | None
    completion_tokens_details: CompletionTokensDetails | None


class AnswerMessage(msgspec.Struct):
    """What the model said."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | None
    tool_calls: list[dict[str, Any]] | None


class ChatChoice(msgspec.Struct):
    """One choice."""

    index: int
    message: AnswerMessage
    logprobs: dict[str, Any] | None
    finish_reason: str


class ChatAnswer(msgspec.Struct):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: UsageAnswer


class TextChoice(msgspec.Struct):
    """One choice."""

    index: int
    text: str
    logprobs: dict[str, Any] | None
    finish_reason: str


class CompletionAnswer(msgspec.Struct):
    """A completion."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: UsageAnswer


class ModelObject(msgspec.Struct):
    """A model that the key may use."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsAnswer(msgspec.Struct):
    """`GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelObject]


class OwnScopeUse(ScopeUseAnswer):
    """With the limits of each request alone: its prompts together, and each of its choices."""

    max_prompt_tokens: int | None
    max_output_tokens: int | None


class OwnUse(OwnScopeUse):
    """The tenant's or the key's limits and use now."""

    max_queued: int
    sequences_queued: int


class ModelUse(msgspec.Struct):
    """Limits and use of one model that is narrowed."""

    tenant: OwnScopeUse
    key: OwnScopeUse


class QueuePlace(msgspec.Struct):
    """What waits, and where in the queue."""

    queued: int
    place: int | None


class LimitsAnswer(msgspec.Struct):
    """`GET /v1/limits`."""

    object: Literal["limits"]
    tenant: OwnUse
    key: OwnUse
    models: dict[str, ModelUse]
    queue: QueuePlace

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

    max_queued: int | None
    """Null of a key: its tenant's holds."""
    sequences_queued: int | None
    """Requests that wait; null where that is not known: of a key nobody counts it."""


class ModelUse(msgspec.Struct):
    """Limits and use of one model that is narrowed."""

    tenant: OwnScopeUse
    key: OwnScopeUse


class NextInQueue(msgspec.Struct):
    """What a request of the tenant would meet that came now: its own that go before it, the
    weighted tokens of all that do (output counts twice), and the wait that is predicted from them;
    null where nothing is known, or no worker is there."""

    own_ahead: int
    tokens_ahead: int
    wait_ms: int | None


class ClassQueue(msgspec.Struct):
    """The tenant's requests of one class that wait for a place, and the weighted tokens that go
    before the first of them, null where none waits."""

    queued: int
    tokens_ahead: int | None
    next: NextInQueue


class ModelQueue(msgspec.Struct):
    """The tenant in a model's queue. `parked` are its requests that wait for its own limits."""

    parked: int
    interactive: ClassQueue
    batch: ClassQueue


class OwnQueue(msgspec.Struct):
    """What of the tenant's waits, in all and in each model that the key may use; null where the
    queue cannot be read at the moment."""

    queued: int | None
    models: dict[str, ModelQueue | None]


class LimitsAnswer(msgspec.Struct):
    """`GET /v1/limits`."""

    object: Literal["limits"]
    tenant: OwnUse
    key: OwnUse
    models: dict[str, ModelUse]
    queue: OwnQueue

"""The bodies of completion requests: every field that is accepted, with the values it may have.

The OpenAPI document is made of these, so that it says what is checked.
"""

from typing import Annotated, Literal

import msgspec

from gateway.wire.media import characters_of, has_media
from gateway.wire.messages import Message
from gateway.wire.tools import ResponseFormat, Tool, ToolChoice

Endpoint = Literal["chat", "completions"]
INT32_MAX = 2**31 - 1
"""Engines hold these numbers in 32 bits: one more kills SGLang's scheduler, and with it the worker
for every tenant."""
PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=INT32_MAX)]


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stream_options`."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None
    """OpenAI pads its chunks unless told not to. Weir never does, so only true is refused."""


class SharedBody(msgspec.Struct, frozen=True):
    """What both endpoints take."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    max_tokens: PositiveInt | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] | None = None
    min_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(ge=0.01, le=2)] | None = None
    regex: str | None = None
    ebnf: str | None = None
    stop_token_ids: list[Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]] | None = None
    skip_special_tokens: bool | None = None
    no_stop_trim: bool | None = None
    user: str | None = None
    service_tier: str | None = None
    min_tokens: Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)] | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None
    metadata: dict[str, object] | None = None
    store: bool | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None


class ChatBody(SharedBody, frozen=True):
    """The body of a chat completion: every field that a request may have."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)] = []
    max_completion_tokens: PositiveInt | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, bool | int | float | str | None] | None = None
    parallel_tool_calls: bool | None = None
    continue_final_message: bool | None = None
    separate_reasoning: bool | None = None
    stream_reasoning: bool | None = None

    @property
    def prompt_characters(self) -> tuple[int, ...]:
        """Characters of text in the messages."""
        return (sum(characters_of(message.content) for message in self.messages),)

    @property
    def has_media(self) -> bool:
        """Whether any message has media."""
        return any(has_media(message.content) for message in self.messages)


class CompletionBody(SharedBody, frozen=True):
    """The body of a completion: every field that a request may have."""

    prompt: str | list[str] = ""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=5)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    json_schema: str | None = None

    @property
    def prompt_characters(self) -> tuple[int, ...]:
        """Characters of each prompt. A suffix is no prompt where one is missing."""
        prompts = [self.prompt] if isinstance(self.prompt, str) else self.prompt
        after = len(self.suffix or "")
        return tuple(len(prompt) + after if prompt else 0 for prompt in prompts)


BODIES: dict[Endpoint, type[ChatBody | CompletionBody]] = {
    "chat": ChatBody,
    "completions": CompletionBody,
}

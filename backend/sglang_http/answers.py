"""SGLang's answers, byte for byte where the fields are known: whole ones and stream events.

Structs encode in field order; what SGLang leaves out is UNSET, what it says as null is None.
"""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from backend.sglang_http.generation import TokenLogprob, Usage

DONE = b"data: [DONE]\n\n"


class CachedDetails(msgspec.Struct, frozen=True):
    """`prompt_tokens_details`."""

    cached_tokens: int


class WireUsage(msgspec.Struct, frozen=True):
    """`usage`."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: CachedDetails | UnsetType | None
    reasoning_tokens: int = 0
    completion_tokens_details: UnsetType | None = None


class AlternativeLogprob(msgspec.Struct, frozen=True):
    """One of `top_logprobs`."""

    token: str
    bytes: list[int] | None
    logprob: float


class WireLogprob(msgspec.Struct, frozen=True):
    """One token of `logprobs.content`."""

    token: str
    bytes: list[int] | None
    logprob: float
    top_logprobs: list[AlternativeLogprob]


class WireLogprobs(msgspec.Struct, frozen=True):
    """`logprobs`."""

    content: list[WireLogprob]


class ChatDelta(msgspec.Struct, frozen=True):
    """`delta` of a chat chunk."""

    reasoning_content: None = None
    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChatChunkChoice(msgspec.Struct, frozen=True):
    """A choice of a chat chunk."""

    index: int
    delta: ChatDelta
    logprobs: WireLogprobs | None = None
    finish_reason: str | None = None
    matched_stop: str | int | None = None


class TextChoice(msgspec.Struct, frozen=True):
    """A choice of a text completion, whole or chunk."""

    index: int
    text: str
    logprobs: None = None
    finish_reason: str | None = None
    matched_stop: str | int | None = None


class ChatMessageOut(msgspec.Struct, frozen=True):
    """The assistant's message."""

    role: str
    content: str
    reasoning_content: None = None


class ChatChoice(msgspec.Struct, frozen=True):
    """A choice of a whole chat completion."""

    index: int
    message: ChatMessageOut
    logprobs: WireLogprobs | None
    finish_reason: str | None
    matched_stop: str | int | None


class WeightSpan(msgspec.Struct, frozen=True):
    """Which weights generated which tokens."""

    version: str
    start: int
    end: int


class Metadata(msgspec.Struct, frozen=True):
    """`metadata` of a whole answer."""

    weight_version: str
    weight_versions: list[WeightSpan]


class Answer(msgspec.Struct, frozen=True):
    """A whole completion, or one chunk of a stream."""

    id: str
    object: str
    created: int
    model: str
    choices: Sequence[ChatChunkChoice | TextChoice] | Sequence[ChatChoice | TextChoice]
    usage: WireUsage | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


_encoder = msgspec.json.Encoder()


def encode(answer: Answer) -> bytes:
    """The JSON body."""
    return _encoder.encode(answer)


def event(answer: Answer) -> bytes:
    """One `data:` event of a stream."""
    return b"data: " + _encoder.encode(answer) + b"\n\n"


def usage_tail(usage: Usage) -> tuple[bytes, bytes]:
    """What lies before and after the counts of output in an event whose last field is usage, as
    `%d` of total and output tokens."""
    tokens = usage.cached_tokens
    details = b"null" if tokens is None else b'{"cached_tokens":%d}' % tokens
    before = b',"usage":{"prompt_tokens":%d,"total_tokens":' % usage.prompt_tokens
    after = (
        b',"prompt_tokens_details":%b,"reasoning_tokens":0,"completion_tokens_details":null}}'
        % details
    )
    return before, after


def wire_usage(usage: Usage, *, closing_text: bool = False) -> WireUsage:
    """Usage as JSON says it. The closing event of a text completion leaves empty fields out, the
    only place where SGLang does."""
    details: CachedDetails | UnsetType | None
    details = None if usage.cached_tokens is None else CachedDetails(usage.cached_tokens)
    if closing_text and details is None:
        details = UNSET
    return WireUsage(
        prompt_tokens=usage.prompt_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        completion_tokens=usage.completion_tokens,
        prompt_tokens_details=details,
        completion_tokens_details=UNSET if closing_text else None,
    )


def wire_logprobs(logprobs: Sequence[TokenLogprob]) -> WireLogprobs | None:
    """Log probabilities as JSON says them, None where there are none."""
    if not logprobs:
        return None
    return WireLogprobs(
        [
            WireLogprob(
                entry.token,
                entry.bytes_,
                entry.logprob,
                [AlternativeLogprob(top.token, top.bytes_, top.logprob) for top in entry.top],
            )
            for entry in logprobs
        ]
    )


def metadata(completion_tokens: int) -> Metadata:
    """Metadata of an answer all of whose tokens come from the one set of weights."""
    return Metadata("default", [WeightSpan("default", 0, completion_tokens)])

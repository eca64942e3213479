"""An engine's chunk, as far as a tenant is shown it, with the types that OpenAI's readers expect.

Whoever reads a chunk reads it by these, so that a stream and a whole answer break on the same one.
"""

import msgspec

# Raw alone takes any value; in a union with None msgspec lets it take null only.
NOTHING = msgspec.Raw(b"null")


class ToolFunction(msgspec.Struct, frozen=True, gc=False):
    """A piece of a call: each part is joined to what came before."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A piece of the call of that index."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: ToolFunction | None = None


class Delta(msgspec.Struct, frozen=True):
    """What a chat's chunk adds: the fields of `gateway.wire.shown.ShownDelta`."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: dict[str, str | None] | None = None
    audio: object = None
    annotations: object = None

    def generated(self) -> bool:
        """Whether anything that a tenant is shown was generated (content, reasoning, a call...)."""
        return bool(
            self.content
            or self.tool_calls
            or self.reasoning_content
            or self.reasoning
            or self.refusal
            or self.function_call
            or self.audio
            or self.annotations
        )


class EngineChoice(msgspec.Struct, frozen=True):
    """A choice of a chunk: a chat's has a delta, a completion's a text."""

    delta: Delta | None = None
    text: str | None = None
    logprobs: dict[str, object] | None = None
    finish_reason: str | None = None
    matched_stop: int | str | None = None
    usage: msgspec.Raw = NOTHING
    """Moonshot says it here."""


class _Groq(msgspec.Struct, frozen=True):
    usage: msgspec.Raw = NOTHING


class EngineChunk(msgspec.Struct, frozen=True):
    """One event of an engine's stream."""

    choices: list[EngineChoice] | None = None
    usage: msgspec.Raw = NOTHING
    x_groq: _Groq | None = None
    error: msgspec.Raw = NOTHING
    object: str | None = None


# Made once: a chunk is read in a few microseconds.
_DECODER = msgspec.json.Decoder(EngineChunk)


def read_chunk(data: bytes) -> EngineChunk:
    """Raises ValueError or RecursionError where it is no chunk: no JSON, not UTF-8 throughout (what
    is not decoded here is passed on as it came), or a shown field of another type."""
    if not data.isascii():
        data.decode()
    return _DECODER.decode(data)

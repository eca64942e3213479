"""Reading an engine's stream: what each event means, and what of it the client may see."""

import msgspec

from gateway.wire.request import RawFields


class PromptDetails(msgspec.Struct, frozen=True):
    """`usage.prompt_tokens_details`."""

    cached_tokens: int | None = None


class CompletionDetails(msgspec.Struct, frozen=True):
    """`usage.completion_tokens_details`."""

    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """An engine's count, cumulative within one stream. SGLang puts reasoning tokens at the top."""

    prompt_tokens: int = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    reasoning_tokens: int | None = None

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens found in the prefix cache; 0 where the engine does not say."""
        details = self.prompt_tokens_details
        return (details.cached_tokens or 0) if details is not None else 0

    @property
    def output_tokens(self) -> int:
        """Generated tokens."""
        return self.completion_tokens or 0

    @property
    def output_reasoning_tokens(self) -> int:
        """Of them, spent on reasoning."""
        details = self.completion_tokens_details
        nested = details.reasoning_tokens if details is not None else None
        return nested or self.reasoning_tokens or 0


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: msgspec.Raw | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: msgspec.Raw | None = None
    object: str | None = None
    message: str | None = None
    code: int | str | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    message: str | None = None
    code: int | str | None = None
    type: str | None = None


class EngineError(msgspec.Struct, frozen=True):
    """An error an engine sent, in any of its shapes. `status` is 500 where it names none."""

    status: int
    message: str


class Event(msgspec.Struct, frozen=True):
    """One event of an engine's stream, understood."""

    has_content: bool
    """Carries generated text, reasoning or a tool call: at least one token."""
    has_choice: bool
    finish_reason: str | None
    usage: Usage | None
    error: EngineError | None
    undecodable: bool = False


_NULL = (b"null", b"[]")


def read_event(data: bytes) -> Event:
    """Understand one event. What does not decode is passed on as it is and marked."""
    try:
        chunk = msgspec.json.decode(data, type=_Chunk)
    except (msgspec.DecodeError, RecursionError):
        return Event(False, True, None, None, None, undecodable=True)
    if chunk.error is not None and bytes(chunk.error) not in _NULL:
        return Event(False, False, None, chunk.usage, read_error(bytes(chunk.error)))
    if chunk.object == "error":
        return Event(False, False, None, chunk.usage, read_error(data))
    choice = chunk.choices[0] if chunk.choices else None
    if choice is None:
        return Event(False, False, None, chunk.usage, None)
    delta = choice.delta
    has_content = bool(choice.text) or (
        delta is not None
        and bool(
            delta.content
            or delta.reasoning_content
            or (delta.tool_calls is not None and bytes(delta.tool_calls) not in _NULL)
        )
    )
    return Event(has_content, True, choice.finish_reason, chunk.usage, None)


def read_error(body: bytes, status: int = 500) -> EngineError:
    """An engine's error body: SGLang's flat object, OpenAI's nested one, or plain text."""
    try:
        wrapped = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        inner = wrapped.get("error")
        target = bytes(inner) if inner is not None and bytes(inner)[:1] == b"{" else body
        parsed = msgspec.json.decode(target, type=_ErrorBody)
    except (msgspec.DecodeError, RecursionError):
        return EngineError(status, "")
    code = parsed.code
    if isinstance(code, str):
        code = int(code) if code.isascii() and code.isdigit() else None
    if code is not None and 400 <= code <= 599:
        status = code
    return EngineError(status, parsed.message or "")


class ChunkRewriter:
    """Turns an engine's chunk into the client's: the id, the model and, where several streams are
    merged, the choice's index are the gateway's; usage is hidden unless asked for. Every other
    value keeps the engine's bytes."""

    def __init__(self, *, response_id: str, model: str, created: int, keep_usage: bool) -> None:
        self._id = msgspec.Raw(msgspec.json.encode(response_id))
        self._model = msgspec.Raw(msgspec.json.encode(model))
        self._created = msgspec.Raw(msgspec.json.encode(created))
        self._keep_usage = keep_usage

    def rewrite(self, data: bytes, index: int) -> bytes:
        """The client's chunk. `data` is a JSON object that `read_event` understood."""
        fields = msgspec.json.decode(data, type=RawFields)
        fields["id"] = self._id
        fields["created"] = self._created
        fields["model"] = self._model
        if not self._keep_usage:
            fields.pop("usage", None)
        if index:
            choices = msgspec.json.decode(fields["choices"], type=list[RawFields])
            for choice in choices:
                choice["index"] = msgspec.Raw(str(index).encode())
            fields["choices"] = msgspec.Raw(msgspec.json.encode(choices))
        return msgspec.json.encode(fields)

    def usage_chunk(self, usage: dict[str, object], chunk_object: str) -> bytes:
        """The last chunk of a stream whose client asked for usage."""
        return msgspec.json.encode({
            "id": self._id, "object": chunk_object, "created": self._created,
            "model": self._model, "choices": [], "usage": usage,
        })  # fmt: skip

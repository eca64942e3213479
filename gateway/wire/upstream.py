"""Reading an engine's stream: what each event means, and what of it the client may see."""

import msgspec

from gateway.wire.request import RawFields
from gateway.wire.usage import Usage, read_usage

# Raw alone takes any value; in a union with None msgspec lets it take null only.
_NOTHING = msgspec.Raw(b"null")
# Decoders that are made once: a chunk is read and written in a few microseconds.
_FIELDS = msgspec.json.Decoder(RawFields)
_EMPTY = (b"null", b"[]", b"{}", b'""')


class _Choice(msgspec.Struct, frozen=True):
    delta: dict[str, msgspec.Raw] | None = None
    text: str | None = None
    finish_reason: str | None = None
    usage: msgspec.Raw = _NOTHING
    """Moonshot says it here."""


class _Groq(msgspec.Struct, frozen=True):
    usage: msgspec.Raw = _NOTHING


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = _NOTHING
    x_groq: _Groq | None = None
    error: msgspec.Raw = _NOTHING
    object: str | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    message: str | None = None
    code: int | str | None = None


class EngineError(msgspec.Struct, frozen=True):
    """An error an engine sent, in any of its shapes. `status` is 500 where it names none."""

    status: int
    message: str


class Event(msgspec.Struct, frozen=True):
    """One event of an engine's stream, understood."""

    has_content: bool = False
    """Carries generated text, reasoning or a tool call: at least one token."""
    has_choice: bool = False
    finish_reason: str | None = None
    usage: Usage | None = None
    error: EngineError | None = None


def read_event(data: bytes) -> Event:
    """Understand one event. What is no chunk is an error: dropping it would cut the answer short
    unseen, and passing it on would break the client's reader."""
    try:
        chunk = msgspec.json.decode(data, type=_Chunk)
    except (msgspec.DecodeError, RecursionError):
        return Event(error=EngineError(500, ""))
    usage = _usage(chunk)
    if bytes(chunk.error) not in _EMPTY:
        return Event(usage=usage, error=read_error(data))
    if chunk.object == "error":
        return Event(usage=usage, error=read_error(data))
    if not chunk.choices:
        return Event(usage=usage)
    choice = chunk.choices[0]
    return Event(
        has_content=bool(choice.text) or _has_content(choice.delta),
        has_choice=True,
        finish_reason=choice.finish_reason or None,
        usage=usage,
    )


def _usage(chunk: _Chunk) -> Usage | None:
    """From wherever in the chunk it is."""
    usage = read_usage(chunk.usage)
    if usage is None and chunk.choices:
        usage = read_usage(chunk.choices[0].usage)
    if usage is None and chunk.x_groq is not None:
        usage = read_usage(chunk.x_groq.usage)
    return usage


def _has_content(delta: dict[str, msgspec.Raw] | None) -> bool:
    """Whatever an engine calls what it generates (content, reasoning, refusal, tool calls...)."""
    return delta is not None and any(
        name != "role" and bytes(value) not in _EMPTY for name, value in delta.items()
    )


def read_error(body: bytes, status: int = 500) -> EngineError:
    """An engine's error body: SGLang's flat object, OpenAI's nested one, or plain text."""
    try:
        wrapped = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        inner = bytes(wrapped.get("error", _NOTHING))
        parsed = msgspec.json.decode(inner if inner[:1] == b"{" else body, type=_ErrorBody)
    except (msgspec.DecodeError, RecursionError):
        return EngineError(status, "")
    code = parsed.code
    if isinstance(code, str):
        code = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else None
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
        fields = _FIELDS.decode(data)
        fields["id"] = self._id
        fields["created"] = self._created
        fields["model"] = self._model
        if not self._keep_usage:
            fields.pop("usage", None)
        # Not part of OpenAI's chunk: a provider's own account of it.
        fields.pop("x_groq", None)
        if index or b'"usage"' in bytes(fields["choices"]):
            choices = msgspec.json.decode(fields["choices"], type=list[RawFields])
            for choice in choices:
                choice.pop("usage", None)
                if index:
                    choice["index"] = msgspec.Raw(str(index).encode())
            fields["choices"] = msgspec.Raw(msgspec.json.encode(choices))
        return msgspec.json.encode(fields)

    def usage_chunk(self, usage: dict[str, object], chunk_object: str) -> bytes:
        """The last chunk of a stream whose client asked for usage."""
        return msgspec.json.encode({
            "id": self._id, "object": chunk_object, "created": self._created,
            "model": self._model, "choices": [], "usage": usage,
        })  # fmt: skip

"""Reading an engine's stream: what each event means, and what of it the client may see."""

import msgspec

from gateway.wire.assembly import usage_object
from gateway.wire.chunk import NOTHING, EngineChunk, read_chunk
from gateway.wire.shown import ShownChunk
from gateway.wire.usage import Usage, read_usage

# Made once: a chunk is written in a few microseconds.
_SHOWN = msgspec.json.Decoder(ShownChunk)
_ENCODER = msgspec.json.Encoder()
_EMPTY = (b"null", b"[]", b"{}", b'""')


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
    """Understand one event. What is no chunk is an error, and so is one with a shown field that is
    none of OpenAI's: dropping it would cut the answer short unseen, and passing it on would break
    the client's reader."""
    try:
        chunk = read_chunk(data)
    except (ValueError, RecursionError):
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
        has_content=bool(choice.text) or (choice.delta is not None and choice.delta.generated()),
        has_choice=True,
        finish_reason=choice.finish_reason or None,
        usage=usage,
    )


def _usage(chunk: EngineChunk) -> Usage | None:
    """From wherever in the chunk it is. One that leaves a count out hides no other's."""
    usage = read_usage(chunk.usage)
    if chunk.choices:
        usage = _either(usage, read_usage(chunk.choices[0].usage))
    if chunk.x_groq is not None:
        usage = _either(usage, read_usage(chunk.x_groq.usage))
    return usage


def _either(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return first.filled(second)


def read_error(body: bytes, status: int = 500) -> EngineError:
    """An engine's error body: SGLang's flat object, OpenAI's nested one, or plain text."""
    try:
        wrapped = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        inner = bytes(wrapped.get("error", NOTHING))
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
    """Turns an engine's chunk into the client's. All around the choices is the gateway's own; of
    the choices only what `gateway.wire.shown` lists passes, with the engine's bytes. Usage is
    hidden unless asked for, and then as the gateway understood it."""

    def __init__(
        self, *, response_id: str, model: str, created: int, chunk_object: str, keep_usage: bool
    ) -> None:
        ours = {"id": response_id, "object": chunk_object, "created": created, "model": model}
        self._start = _ENCODER.encode(ours)[:-1] + b',"choices":'
        self._keep_usage = keep_usage

    def rewrite(self, data: bytes, index: int, usage: Usage | None = None) -> bytes:
        """The client's chunk. `data` is a JSON object with choices that `read_event` understood,
        `usage` what it found in there, `index` the client's of its choice."""
        if b"\n" in data:  # of several lines, none of them inside a text: JSON has none there
            data = data.replace(b"\n", b" ")
        choices = _SHOWN.decode(data).choices
        for choice in choices:
            choice.index = msgspec.Raw(b"%d" % index)
        shown = _progress(usage) if self._keep_usage and usage is not None else None
        return self._start + _ENCODER.encode(choices) + _usage_end(shown)

    def usage_chunk(self, usage: dict[str, object]) -> bytes:
        """The last chunk of a stream whose client asked for usage."""
        return self._start + b"[]" + _usage_end(usage)


def _usage_end(usage: dict[str, object] | None) -> bytes:
    return b"}" if usage is None else b',"usage":' + _ENCODER.encode(usage) + b"}"


def _progress(usage: Usage) -> dict[str, object] | None:
    """What a stream has used so far; None where an engine does not say it whole."""
    prompt, output, cached = usage.prompt_tokens, usage.output_tokens, usage.cached_tokens
    if prompt is None or output is None:
        return None
    return usage_object(
        prompt_tokens=prompt,
        cached_tokens=None if cached is None else min(cached, prompt),
        output_tokens=output,
        reasoning_tokens=min(usage.reasoning_tokens or 0, output),
    )

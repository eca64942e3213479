"""Reads a streamed chat completion, event by event, from any OpenAI-compatible server. Pure.

Every event is decoded whole: with the few typed fields below that takes 0.6 µs for SGLang's 250
bytes, less than half of what telling plain content apart by byte searches took.
"""

from array import array
from dataclasses import dataclass, field

import msgspec

from backend.loadtest.answer_error import AnswerError, read_error

EVENT_BYTES_MAX = 4 * 1024 * 1024


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class StreamUsage(msgspec.Struct):
    """`usage`, as far as it is measured."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        """None where the target does not say."""
        details = self.prompt_tokens_details
        return None if details is None else details.cached_tokens


class _Chunk(msgspec.Struct):
    object: str | None = None
    choices: list[_Choice] | None = None
    usage: StreamUsage | None = None
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_NULL = msgspec.Raw(b"null")
_decoder = msgspec.json.Decoder(_Chunk)


@dataclass(slots=True)
class SseReader:
    """One stream. Feed it each piece as it is read, with the time at which it was."""

    first_token_at_ms: float | None = None
    """The first event with content, reasoning or a tool call: a role or a comment is none."""
    last_token_at_ms: float | None = None
    gaps_ms: "array[float]" = field(default_factory=lambda: array("f"))
    """Between one such event and the next; those read in one piece are 0 apart."""
    finish_reason: str | None = None
    usage: StreamUsage | None = None
    """The last one: it is cumulative."""
    error: AnswerError | None = None
    """The first one that the stream carried."""
    _rest: bytes = b""

    def feed(self, data: bytes, at_ms: float) -> None:
        """Take a piece of the body. Never raises: what cannot be read becomes the `error`."""
        if self._rest:
            data = self._rest + data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        start = 0
        while (end := data.find(b"\n\n", start)) >= 0:
            self._event(data[start:end], at_ms)
            start = end + 2
        self._rest = data[start:] if start else data
        if len(self._rest) > EVENT_BYTES_MAX:
            self._rest = b""
            self._fail(AnswerError(code="event_too_long"))

    def _event(self, event: bytes, at_ms: float) -> None:
        if event.startswith(b"data:") and b"\n" not in event:
            payload = event[5:]
        else:
            lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
            if not lines:
                return
            payload = b"\n".join(lines)
        try:
            chunk = _decoder.decode(payload)
        except msgspec.DecodeError:
            if payload.strip() != b"[DONE]":
                self._fail(AnswerError(code="unreadable_event"))
            return
        if chunk.object == "error" or chunk.error not in (msgspec.UNSET, _NULL):
            self._fail(read_error(payload))
        self._chunk(chunk, at_ms)

    def _chunk(self, chunk: _Chunk, at_ms: float) -> None:
        if chunk.usage is not None:
            self.usage = chunk.usage
        for choice in chunk.choices or ():
            delta = choice.delta
            if delta is not None and (
                delta.content or delta.reasoning_content or delta.reasoning or delta.tool_calls
            ):
                self._token(at_ms)
            if choice.finish_reason is not None:
                self.finish_reason = choice.finish_reason

    def _token(self, at_ms: float) -> None:
        if self.last_token_at_ms is None:
            self.first_token_at_ms = at_ms
        else:
            self.gaps_ms.append(at_ms - self.last_token_at_ms)
        self.last_token_at_ms = at_ms

    def _fail(self, error: AnswerError) -> None:
        self.error = self.error or error

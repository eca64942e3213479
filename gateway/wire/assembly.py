"""Assembling a whole answer from one stream per choice."""

import msgspec

from gateway.wire.chunk import Delta, ToolCall, read_chunk
from gateway.wire.shown import GENERATED_FIELDS

Json = dict[str, object]
# The rest of what is generated is joined by its kind.
_JOINED = tuple(sorted(GENERATED_FIELDS - {"content", "tool_calls"}))


class ChoiceAssembly:
    """Takes one choice's chunks, gives the choice of a whole answer."""

    def __init__(self, index: int, *, chat: bool) -> None:
        self._index = index
        self._chat = chat
        self._content: list[str] = []
        self._message: Json = {}
        self._tools: dict[int, Json] = {}
        self._logprobs: dict[str, list[object]] | None = None
        self._finish: str | None = None
        self._matched_stop: int | str | None = None

    def add(self, data: bytes) -> None:
        """One chunk of the stream, as the engine sent it and `read_event` understood it."""
        for choice in read_chunk(data).choices or ():
            if choice.text:
                self._content.append(choice.text)
            if choice.delta is not None:
                self._add_delta(choice.delta)
            if choice.logprobs:
                self._add_logprobs(choice.logprobs)
            self._finish = choice.finish_reason or self._finish
            if choice.matched_stop is not None:
                self._matched_stop = choice.matched_stop

    def _add_delta(self, delta: Delta) -> None:
        if delta.content:
            self._content.append(delta.content)
        for call in delta.tool_calls or ():
            self._add_tool_call(call)
        for name in _JOINED:
            more = getattr(delta, name)
            if more is not None:
                self._message[name] = _joined(self._message.get(name), more)

    def _add_tool_call(self, call: ToolCall) -> None:
        index = len(self._tools) if call.index is None else call.index
        known = self._tools.setdefault(
            index, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        )
        known["id"] = call.id or known["id"]
        function = known["function"]
        assert isinstance(function, dict)  # noqa: S101 - set above
        if call.function is not None:
            function["name"] += call.function.name or ""
            function["arguments"] += call.function.arguments or ""

    def _add_logprobs(self, logprobs: dict[str, object]) -> None:
        known = self._logprobs = self._logprobs or {}
        for name, values in logprobs.items():
            if isinstance(values, list):
                known.setdefault(name, []).extend(values)

    def choice(self) -> Json:
        """The assembled choice."""
        text = "".join(self._content)
        ending: Json = {
            "logprobs": self._logprobs,
            "finish_reason": self._finish,
            # What ended a tool call is no stop of the tenant's: SGLang says none in a whole answer.
            "matched_stop": None if self._finish == "tool_calls" else self._matched_stop,
        }
        if not self._chat:
            return {"index": self._index, "text": text, **ending}
        tools = [self._tools[index] for index in sorted(self._tools)]
        message: Json = {"role": "assistant", "content": None if tools and not text else text}
        message |= {"reasoning_content": None} | self._message
        message["tool_calls"] = tools or None
        return {"index": self._index, "message": message, **ending}


def _joined(known: object, more: object) -> object:
    """What a field of a message is after one more delta of it: texts and lists go on, objects are
    joined field by field, anything else is the latest."""
    if more is None or known is None:
        return known if more is None else more
    if isinstance(known, str) and isinstance(more, str):
        return known + more
    if isinstance(known, list) and isinstance(more, list):
        return known + more
    if isinstance(known, dict) and isinstance(more, dict):
        return known | {name: _joined(known.get(name), value) for name, value in more.items()}
    return more


def usage_object(
    *, prompt_tokens: int, cached_tokens: int | None, output_tokens: int, reasoning_tokens: int
) -> Json:
    """OpenAI's usage object. `cached_tokens` is None where the engine does not report them."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "prompt_tokens_details": (
            None if cached_tokens is None else {"cached_tokens": cached_tokens}
        ),
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    }


def whole_answer(
    *, response_id: str, model: str, created: int, chat: bool, choices: list[Json], usage: Json
) -> bytes:
    """The body of a non-streaming answer."""
    return msgspec.json.encode({
        "id": response_id,
        "object": "chat.completion" if chat else "text_completion",
        "created": created,
        "model": model,
        "choices": choices,
        "usage": usage,
    })  # fmt: skip

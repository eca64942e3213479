"""Messages of a conversation, the calls in them, and the messages as engines are sent them."""

from typing import Literal

import msgspec

from gateway.wire.media import Part


class CalledFunction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was called, and with what."""

    name: str | None = None
    arguments: str | dict[str, object] | None = None
    parsed_arguments: object | msgspec.UnsetType = msgspec.UNSET
    """OpenAI's SDKs read it out of `arguments` and send it back; it is not passed on."""


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the assistant made, as answers have it."""

    function: CalledFunction
    type: Literal["function"] = "function"
    id: str | None = None
    index: int | None = None


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a conversation: what can be asked, and whatever an answer has, since clients
    send answers back as they came."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: list[object] | msgspec.UnsetType | None = msgspec.UNSET
    """Of the answer, not of the prompt; not passed on."""
    parsed: object | msgspec.UnsetType = msgspec.UNSET
    """OpenAI's SDKs read it out of `content` and send it back; not passed on."""
    audio: None = None
    function_call: None = None


def forwarded_messages(messages: list[Message], raw: msgspec.Raw) -> msgspec.Raw:
    """The messages as they came, but for what only a client reads. That may be any JSON, and so
    never reaches an engine."""
    if not any(_has_clients_own(message) for message in messages):
        return raw
    kept: list[dict[str, object]] = msgspec.json.decode(raw)
    for message in kept:
        message.pop("parsed", None)
        message.pop("annotations", None)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            call["function"].pop("parsed_arguments", None)
    return msgspec.Raw(msgspec.json.encode(kept))


def _has_clients_own(message: Message) -> bool:
    return (
        message.parsed is not msgspec.UNSET
        or message.annotations is not msgspec.UNSET
        or any(
            call.function.parsed_arguments is not msgspec.UNSET for call in message.tool_calls or ()
        )
    )

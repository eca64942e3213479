"""What of a choice in an engine's answer a tenant is shown: OpenAI's fields and SGLang's own, each
with the engine's bytes. All else is the engine's or a provider's account of itself (who served it,
what that cost whom) and is left out.
"""

import msgspec

_UNSAID = msgspec.Raw(b"")


class ShownDelta(msgspec.Struct, omit_defaults=True):
    """A delta of a chat stream: who speaks, and everything that is generated."""

    role: msgspec.Raw = _UNSAID
    content: msgspec.Raw = _UNSAID
    reasoning_content: msgspec.Raw = _UNSAID
    reasoning: msgspec.Raw = _UNSAID
    """vLLM's name for it, and other engines'."""
    refusal: msgspec.Raw = _UNSAID
    tool_calls: msgspec.Raw = _UNSAID
    function_call: msgspec.Raw = _UNSAID
    audio: msgspec.Raw = _UNSAID
    annotations: msgspec.Raw = _UNSAID


GENERATED_FIELDS = frozenset(ShownDelta.__struct_fields__) - {"role"}
"""Fields of a delta that hold what the model generated."""


class ShownChoice(msgspec.Struct, omit_defaults=True):
    """A choice of a stream's chunk; a chat's has a delta, a completion's a text."""

    index: msgspec.Raw = _UNSAID
    delta: ShownDelta | msgspec.UnsetType | None = msgspec.UNSET
    text: msgspec.Raw = _UNSAID
    logprobs: msgspec.Raw = _UNSAID
    finish_reason: msgspec.Raw = _UNSAID
    matched_stop: msgspec.Raw = _UNSAID
    """SGLang's: the string or token that ended it."""


class ShownChunk(msgspec.Struct):
    """What of a whole chunk is the engine's to say."""

    choices: list[ShownChoice]

"""What a tenant is told of an engine's refusal: what is wrong and with which of its fields, never
the engine's own words, which may hold paths and the prompt."""

import re
from collections.abc import Collection

from gateway.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    Overloaded,
    UnsupportedParameter,
    WeirError,
)

FULL = frozenset({429, 503})
"""The engine has no room now; another may."""

_TOO_LONG = re.compile(
    r"context length|maximum allowed length|longer than the model|too many tokens|"
    r"max_(completion|new)_tokens is too large|KV memory budget|prompt is too long"
)
_UNSUPPORTED = re.compile(r"([a-z_]+) is not supported\b")
"""How our own engines say that they do not have a field."""
_ALIASES = {
    "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "sampling_seed": "seed",
}
"""SGLang's own names of fields that tenants know by others."""
_KINDS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (
        re.compile(r"only one of json_schema, regex", re.IGNORECASE),
        "only one of response_format, json_schema, regex and ebnf can be set",
        (),
    ),
    (
        re.compile(r"grammar|json_?schema|json schema|\bregex\b|\bebnf\b", re.IGNORECASE),
        "the engine cannot use this grammar: it is not valid, or asks for what it does not know",
        ("response_format", "json_schema", "regex", "ebnf", "tools"),
    ),
    (
        re.compile(r"tool[ _]?(choice|call)|\btools?\b", re.IGNORECASE),
        "the engine cannot use these tools as the request combines them",
        ("tool_choice", "tools"),
    ),
    (
        re.compile(r"logprobs?\b", re.IGNORECASE),
        "the engine does not give log probabilities as asked",
        ("top_logprobs", "logprobs"),
    ),
    (
        re.compile(r"\b(image|audio|video|multimodal)", re.IGNORECASE),
        "the model cannot use the media of this request",
        ("messages",),
    ),
    (
        re.compile(r"\btemplate\b|roles must alternate|\brole\b", re.IGNORECASE),
        "the model's chat template does not take these messages",
        ("messages",),
    ),
)
"""What an engine refuses, how it is said, and which field is named, the likeliest first."""


def blames_grammar(message: str, sent: Collection[str]) -> bool:
    """Whether a failure is of the tenant's own grammar: SGLang says so with a 500 where it fails
    while it generates."""
    pattern, _, fields = _KINDS[1]
    return pattern.search(message) is not None and not {*fields}.isdisjoint(sent)


def refusal(status: int, message: str, sent: Collection[str]) -> WeirError:
    """The error for a tenant whose request an engine refused with this status and message.

    `sent` are the names of the fields that went upstream from the tenant; only such a name is ever
    given as `param`.
    """
    if status in FULL:
        return Overloaded("the engine's queue is full", code="no_capacity")
    if _TOO_LONG.search(message):
        return ContextLengthExceeded(
            "prompt and output do not fit the engine's context",
            param=_first(("messages", "prompt"), sent),
        )
    unsupported = _UNSUPPORTED.match(message)
    if unsupported is not None and unsupported[1] in sent:
        return _unsupported(unsupported[1])
    return _invalid(message, sent)


def _invalid(message: str, sent: Collection[str]) -> InvalidRequest:
    """By kind, or else by the field that the message names."""
    named = _named(message, sent)
    for pattern, sentence, fields in _KINDS:
        if pattern.search(message) and (not fields or not {*fields}.isdisjoint(sent)):
            unique = named if named in fields else _first(fields, sent)
            return InvalidRequest(sentence, param=unique)
    if named is None:
        return InvalidRequest("the engine refused the request as invalid")
    if "not supported" in message:
        return _unsupported(named)
    return InvalidRequest(f"the engine refused the value of {named}", param=named)


def _unsupported(field: str) -> UnsupportedParameter:
    return UnsupportedParameter(f"{field} is not supported by the model's engine", param=field)


def _named(message: str, sent: Collection[str]) -> str | None:
    """The one field of the tenant's that the message names as a word, or None."""
    known = {_ALIASES.get(word, word) for word in re.findall(r"[a-z_]+", message)}
    found = known & {*sent}
    return found.pop() if len(found) == 1 else None


def _first(fields: tuple[str, ...], sent: Collection[str]) -> str | None:
    return next((field for field in fields if field in sent), None)

"""JSON as text that a JSON library would not write: keys twice, numbers and strings as given."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = Any
"""A tree of JSON values in which the two below may stand too."""


@dataclass(frozen=True)
class Literal:
    """Bytes that stand in the text as they are."""

    text: bytes


@dataclass(frozen=True)
class Pairs:
    """An object by its members, of which several may have the same key."""

    members: Sequence[tuple[str, Json]]


def encode(value: Json) -> bytes:
    """The text of a tree. A lone surrogate is written as an escape, as a client's library does."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, Pairs | dict):
        members = value.members if isinstance(value, Pairs) else value.items()
        return b"{" + b",".join(_string(key) + b":" + encode(each) for key, each in members) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(encode(each) for each in value) + b"]"
    if isinstance(value, str):
        return _string(value)
    return json.dumps(value).encode()


def _string(text: str) -> bytes:
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()

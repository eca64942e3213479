"""What a gateway and its process that reads large bodies tell each other: frames of a length and a
msgpack message. A long piece of a body is told by where it is in the body: it is there already."""

import struct
from collections.abc import Mapping

import msgspec

from gateway import errors
from gateway.errors import WeirError
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request

LENGTH = struct.Struct(">Q")
INLINE_BYTES_MAX = 4_096
Piece = bytes | tuple[int, int]
"""A piece of JSON: itself, or its offset and length in the body."""


class Question(msgspec.Struct, frozen=True, array_like=True):
    """Followed by the body, `body_bytes` of it."""

    endpoint: Endpoint
    headers: dict[bytes, bytes]
    body_bytes: int


class Read(msgspec.Struct, frozen=True, array_like=True, tag="read"):
    """The request: its plain fields, and those that are JSON."""

    plain: bytes
    prompts: list[Piece]
    forward: dict[str, Piece]


class Wrong(msgspec.Struct, frozen=True, array_like=True, tag="wrong"):
    """The error that reading raised."""

    kind: str
    message: str
    code: str
    param: str | None


Reply = Read | Wrong
_replies = msgspec.msgpack.Decoder(Reply)
_PLAIN = CompletionRequest.__struct_fields__
_JSON = ("prompts", "forward")


def answer(endpoint: Endpoint, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
    """Read a body and tell what came of it. Does not raise: what a bug of ours says may quote the
    body, and goes nowhere."""
    try:
        request = read_request(endpoint, body, headers)
    except WeirError as error:
        wrong = Wrong(type(error).__name__, error.message, error.code, error.param)
        return msgspec.msgpack.encode(wrong)
    except Exception:  # noqa: BLE001 - see above
        return msgspec.msgpack.encode(
            Wrong(WeirError.__name__, "the gateway failed on this request", WeirError.code, None)
        )
    plain = {name: getattr(request, name) for name in _PLAIN if name not in _JSON}
    return msgspec.msgpack.encode(
        Read(
            plain=msgspec.msgpack.encode(plain),
            prompts=[_piece(raw, body) for raw in request.prompts],
            forward={name: _piece(raw, body) for name, raw in request.forward.items()},
        )
    )


def understood(reply: bytes, body: bytes) -> CompletionRequest:
    """The request that was read of `body`. Raises the error that reading it raised."""
    said = _replies.decode(reply)
    if isinstance(said, Wrong):
        kind: type[WeirError] = getattr(errors, said.kind)
        raise kind(said.message, code=said.code, param=said.param)
    plain = msgspec.msgpack.decode(said.plain)
    for name in ("prompt_characters", "prompt_bytes", "prompt_growth_bytes"):
        plain[name] = tuple(plain[name])
    prompts = tuple(_raw(piece, body) for piece in said.prompts)
    forward = {name: _raw(piece, body) for name, piece in said.forward.items()}
    if "messages" in forward:
        forward["messages"] = prompts[0]
    return CompletionRequest(**plain, prompts=prompts, forward=forward)


def _piece(raw: msgspec.Raw, body: bytes) -> Piece:
    piece = bytes(raw)
    if len(piece) <= INLINE_BYTES_MAX:
        return piece
    offset = body.find(piece)
    return piece if offset < 0 else (offset, len(piece))


def _raw(piece: Piece, body: bytes) -> msgspec.Raw:
    if isinstance(piece, bytes):
        return msgspec.Raw(piece)
    offset, length = piece
    return msgspec.Raw(body[offset : offset + length])

"""The TCP connection under an answer: written without a task switch, or reset."""

import socket
import struct
from asyncio import Transport
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Protocol, cast

import msgspec

from backend.sglang_http.answers import usage_tail
from backend.sglang_http.generation import Generation

EXTENSION = "weir.connection"
"""Where an ASGI scope's extensions have it."""
_MARK = token_hex(16)
_encoder = msgspec.json.Encoder()


class Flow(Protocol):
    """The server's flow control."""

    write_paused: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of the server."""

    transport: Transport
    flow: Flow

    @property
    def writable(self) -> bool:
        """Whether more can be written now without waiting."""
        return not (self.flow.write_paused or self.transport.is_closing())

    def close(self) -> None:
        """Close it once what is written has gone out, in the middle of an answer too."""
        self.transport.close()

    def reset(self) -> None:
        """Close it with RST, as a host does that has lost its memory of it."""
        raw = cast("socket.socket", self.transport.get_extra_info("socket"))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def connection_of(scope: Mapping[str, object]) -> Connection | None:
    """The connection of an ASGI scope; None where the server shows none."""
    extensions = cast("Mapping[str, object]", scope.get("extensions") or {})
    found = extensions.get(EXTENSION)
    return found if isinstance(found, Connection) else None


class ContentWriter:
    """Writes text as content events of one stream, in chunks of HTTP/1.1.

    A `generation.DirectReader`. What is constant in an event is encoded once.
    """

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        event_of: Callable[[str], bytes],
        *,
        continuous_usage: bool,
    ) -> None:
        """`event_of` makes the whole event of a text, without usage."""
        self._connection = connection
        self._generation = generation
        self._continuous_usage = continuous_usage
        self._head, self._tail = event_of(_MARK).split(_encoder.encode(_MARK))
        self._usage: tuple[bytes, bytes] | None = None

    def accepts(self) -> bool:
        """Whether the connection takes more without waiting."""
        return self._connection.writable

    def write(self, text: str) -> None:
        """One event."""
        event = self._head + _encoder.encode(text)
        event += self._with_usage() if self._continuous_usage else self._tail
        self._connection.transport.write(b"%x\r\n%b\r\n" % (len(event), event))

    def _with_usage(self) -> bytes:
        """The end of an event, whose last field is the usage so far."""
        generation = self._generation
        if self._usage is None:
            before, after = usage_tail(generation.usage)
            self._usage = self._tail.rstrip().removesuffix(b"}") + before, after
        before, after = self._usage
        output = generation.completion_tokens
        return b'%b%d,"completion_tokens":%d%b\n\n' % (
            before,
            generation.prompt_tokens + output,
            output,
            after,
        )

"""The tenant's end of one request, on ASGI.

Sources: ASGI 3 HTTP specification; uvicorn's `receive()`, which answers `http.disconnect` also once
a response is complete, so a watcher must end before the last byte is sent.
"""

import asyncio
from collections.abc import Callable, Sequence

from litestar.types import Receive, Scope, Send

from gateway.errors import InvalidRequest, RequestTooLarge
from gateway.serving.ports import ClientGone, Clock

_CLOSED_TRANSPORT = "unable to perform operation on"
"""How uvloop begins its RuntimeError for a write to a connection that is closed already."""


class AsgiConnection:
    """Implements `gateway.serving.ports.ClientConnection`."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        clock: Clock,
        *,
        body_bytes_max: int,
        body_read_ms_max: int,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._clock = clock
        self._body_bytes_max = body_bytes_max
        self._body_read_s = body_read_ms_max / 1000
        self._left = False
        self._status: int | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._blocked_since_us: int | None = None
        self._writer: asyncio.Task[object] | None = None
        self._gave_up = False

    @property
    def left(self) -> bool:
        """Whether the client has gone, or was given up on."""
        return self._left

    @property
    def status(self) -> int | None:
        """Of the answer, once it has begun."""
        return self._status

    @property
    def blocked_since_us(self) -> int | None:
        """Since when a write has been waiting."""
        return self._blocked_since_us

    def on_leave(self, callback: Callable[[], None]) -> None:
        """Call back once when the client leaves; at once if it has."""
        if self._left:
            callback()
        else:
            self._callbacks.append(callback)

    async def body(self, arrived: Callable[[int], None]) -> bytes:
        """See `gateway.serving.ports.ClientConnection`; from then on the connection is watched for
        the client's leave. What is left of a body that is refused is the protocol's to throw
        away."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_read_s):
                while await self._piece(body, arrived):
                    pass
            whole = bytes(body)
        except TimeoutError:
            raise InvalidRequest("the body did not arrive in time") from None
        finally:
            # What is raised keeps this frame until it is answered, which waits for the client.
            body.clear()
        self._watcher = asyncio.create_task(self._watch())
        return whole

    async def _piece(self, body: bytearray, arrived: Callable[[int], None]) -> bool:
        """Add the next piece of a body to what there is; whether more is to come."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._left = True
            raise ClientGone
        assert message["type"] == "http.request"  # noqa: S101 - ASGI has no third
        piece = message["body"]
        if len(body) + len(piece) > self._body_bytes_max:
            raise RequestTooLarge(f"the body is over {self._body_bytes_max} bytes")
        arrived(len(piece))
        # A list of pieces would take many times their bytes where each is a byte.
        body += piece
        return message["more_body"]

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            for callback in self._callbacks:
                callback()

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Status and headers."""
        if not self._left:
            self._status = status
        await self._hand_over({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Bytes of the body, more to come."""
        await self._hand_over({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"") -> None:
        """The last bytes; the watcher ends first, since what it would see now is no leave."""
        if self._watcher is not None:
            self._watcher.cancel()
        await self._hand_over({"type": "http.response.body", "body": data, "more_body": False})

    async def _hand_over(self, message: dict[str, object]) -> None:
        if self._left:
            return
        self._blocked_since_us = self._clock.monotonic_us()
        self._writer = asyncio.current_task()
        try:
            await self._send(message)  # type: ignore[arg-type] # the three messages of ASGI
        except asyncio.CancelledError:
            if not self._gave_up or self._writer is None:
                raise
            self._writer.uncancel()
        except (OSError, RuntimeError) as error:
            # A RuntimeError of another kind is uvicorn's word on a wrong order of messages.
            if isinstance(error, RuntimeError) and _CLOSED_TRANSPORT not in str(error):
                raise
            self._leave()
        finally:
            self._blocked_since_us = None
            self._writer = None

    def give_up(self) -> None:
        """Stop waiting for a client that takes no bytes: it counts as gone."""
        self._gave_up = True
        self._left = True
        if self._writer is not None:
            self._writer.cancel()

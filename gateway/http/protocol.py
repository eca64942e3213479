"""uvicorn's HTTP/1.1 protocol, with bounds on what a connection may hold, ask for and wait for.

uvicorn's own bounds nothing before the application runs, and pauses reading for a pipelined
request, from when on a client's leave is unseen. Here one request is served at a time:

- Once a request has arrived, whatever else comes before its answer has ended is thrown away
  unread, and the connection closes after that answer (RFC 9112, 9.3.2 and 9.6: the client repeats).
- What the parser is fed without a complete head or a piece of body is bounded in every phase.
- A head is complete within `head_ms_max` of the connection's opening or of its own first byte.
- An answer waits for the rest of its request's body, within bounds, since a sender that is cut off
  may lose the answer; where the body has still not ended the connection closes after the answer.
"""

import asyncio
import secrets
from asyncio.events import TimerHandle
from contextvars import copy_context
from typing import Any
from uuid import UUID

import httptools
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from gateway.clock import SystemClock
from gateway.domain.request_id import request_id
from gateway.errors import InvalidRequest, RequestTooLarge, WeirError
from gateway.telemetry.error_answers import OTHER, tell_error
from gateway.telemetry.log_context import begin_request
from gateway.wire.error_body import error_json


class _Unwanted(Exception):
    """Ends the parser: nothing that follows on the connection is read."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a client. `bounded_protocol` makes it with bounds of a server's own."""

    header_bytes_max = 64 * 1024
    """Of a request's line and headers, and of whatever else comes without progress."""
    head_ms_max = 30_000
    drain_bytes_max = 32 * 1024 * 1024
    drain_ms_max = 5_000

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._served: ASGI3Application = self.app
        self.app = self._serve
        self._in_head = True
        self._head_bytes = 0
        self._stalled_bytes = 0
        """Fed since the last complete head, piece of body or end of a request."""
        self._head_timer: TimerHandle | None = None
        self._refused = False
        self._refused_bytes = 0

    @property
    def _answering(self) -> bool:
        """Whether a request has arrived whole and its answer has not ended."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head_timer()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_ms_max / 1000, self.transport.close)

    def _forget_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._refused_bytes += len(data)
            if self._refused_bytes > self.drain_bytes_max:
                self.transport.close()
        elif self._answering:
            self.cycle.keep_alive = False
        elif not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        self._stalled_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No other protocol is spoken: the request is answered as it is, what follows is not.
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            if self._answering:
                self.cycle.keep_alive = False
            elif self._head_bytes > self.header_bytes_max:
                self._refuse(RequestTooLarge("the request's headers are too large"))
            else:
                self._refuse(InvalidRequest("Invalid HTTP request received."))
        else:
            self._check_progress()

    def _check_progress(self) -> None:
        if self._stalled_bytes > self.header_bytes_max:
            if self._in_head:
                self._refuse(RequestTooLarge("the request's headers are too large"))
            else:
                self.transport.close()
        elif self._in_head and self._head_timer is None and not self._answering:
            self._expect_head()

    def _refuse(self, error: WeirError) -> None:
        """Answer what is no request and stop writing; what its sender still sends is thrown away
        for a while, since closing at once would reset the connection and lose the answer."""
        self._refused = True
        self._forget_head_timer()
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self.flow.resume_reading()
        body = error_json(error)
        identifier = _fresh_id()
        copy_context().run(_tell_refused, identifier, error)
        self.transport.write(
            STATUS_LINE[error.status] + b"content-type: application/json\r\n"
            b"connection: close\r\nx-request-id: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (str(identifier).encode(), len(body), body)
        )
        self.transport.write_eof()
        self._head_timer = self.loop.call_later(self.drain_ms_max / 1000, self.transport.close)

    def on_message_begin(self) -> None:
        if self._answering:
            raise _Unwanted
        self._head_bytes = 0
        super().on_message_begin()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.header_bytes_max:
            raise _Unwanted

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes later is a trailer, and no header of the request
            self._count_head(len(name) + len(value) + 4)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._forget_head_timer()
        self._in_head = False
        self._stalled_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._stalled_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        self._stalled_bytes = 0
        super().on_message_complete()

    async def _serve(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """The application, whose answer waits for the end of the body. Whatever it logs has an id
        of the request; those of completions get another, which is their record's."""
        begin_request(_fresh_id())
        cycle = self.cycle

        async def send_after_body(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.start" and cycle.more_body:
                await self._drain(cycle)
                if cycle.more_body:
                    event["headers"] = [*event.get("headers", ()), (b"connection", b"close")]
            await send(event)

        await self._served(scope, receive, send_after_body)

    async def _drain(self, cycle: RequestResponseCycle) -> None:
        """Throw away what remains of a body. One that waits to be asked for (Expect) is not."""
        if cycle.waiting_for_100_continue and not cycle.body:
            return
        drained_bytes = 0
        try:
            async with asyncio.timeout(self.drain_ms_max / 1000):
                while cycle.more_body and drained_bytes <= self.drain_bytes_max:
                    message = await cycle.receive()
                    if message["type"] != "http.request":
                        return
                    drained_bytes += len(message["body"])
        except TimeoutError:
            return


def _fresh_id() -> UUID:
    return request_id(SystemClock().now_ms(), secrets.randbits(74))


def _tell_refused(identifier: UUID, error: WeirError) -> None:
    begin_request(identifier)
    tell_error(OTHER, error.status, error.code)


def bounded_protocol(
    *, header_bytes_max: int, head_ms_max: int, drain_ms_max: int = BoundedProtocol.drain_ms_max
) -> type[BoundedProtocol]:
    """The protocol with these bounds: bytes of a head, ms until it is complete, ms that an answer
    waits for the rest of its request's body."""
    bounds = {
        "header_bytes_max": header_bytes_max,
        "head_ms_max": head_ms_max,
        "drain_ms_max": drain_ms_max,
    }
    return type("BoundedProtocol", (BoundedProtocol,), bounds)

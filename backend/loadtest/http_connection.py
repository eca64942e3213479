"""Connections for an open loop: as many as it takes, each used again while it is fresh.

Measured on a real socket with 100 streams of 100 events a second, on uvloop and a busy machine: an
event costs 16 µs of processor time here (a sixth of a core at 10,000 a second) and 18 to 21 with
aiohttp, a request 290 µs and 400. What decided was not that but the moment of the write: here a
connection is had ahead of time and the bytes go to the socket within the callback that is due.
"""

import asyncio
import resource
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools

IDLE_S_MAX = 2.0
"""Less than any server waits (uvicorn, so SGLang: 5 s): a connection that the server is closing
would lose a request."""
CONNECT_TIMEOUT_S = 30.0
CONTENT_TYPE = b"content-type"


class Receiver(Protocol):
    """What becomes of one answer. `at_s` is `time.monotonic` when the piece was read."""

    def head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """The status line and the headers, their names in lower case."""

    def body(self, data: bytes, at_s: float) -> None:
        """A piece of the body."""

    def ended(self, *, whole: bool, at_s: float) -> None:
        """The last call: the body is whole, or the connection broke off."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a base URL leads."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    authority: str
    """For the `host` header."""
    path: str
    """The URL's own, in front of every path asked for."""


NO_URL = "not the URL of an HTTP server, such as http://localhost:8000"


def address_of(url: str) -> Address:
    """Of a base URL, with or without OpenAI's `/v1` at its end.

    Raises:
        ValueError: it is no HTTP URL. Nothing of it is repeated, which may be a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(NO_URL) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(NO_URL)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    path = parts.path.rstrip("/").removesuffix("/v1")
    return Address(
        host=parts.hostname,
        port=port or (443 if tls else 80),
        tls=tls,
        authority=parts.netloc.rpartition("@")[2],
        path=path,
    )


def allow_open_files() -> int:
    """Raise this process's limit of open files to what it may have. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Connection(asyncio.Protocol):
    """One connection: idle, or with one request."""

    def __init__(self, give_back: Callable[["Connection"], None]) -> None:
        self._give_back = give_back
        self._receiver: Receiver | None = None
        self._transport: asyncio.Transport | None = None
        self.idle_since_s = 0.0

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent on it."""
        return self._transport is None or self._transport.is_closing()

    def send(self, request: bytes, receiver: Receiver) -> None:
        """Hand a whole request to the socket. What comes back goes to the receiver."""
        if self._transport is None:
            raise ConnectionError("the connection is closed")
        self._receiver = receiver
        # A parser holds the state of one answer: whatever the last one left, this one is fresh.
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._whole = False
        self._transport.write(request)

    def abandon(self) -> None:
        """Close at once. The receiver hears no more."""
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Both asyncio and uvloop have set TCP_NODELAY by now."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse what was read; one clock reading serves all events in it."""
        if self._receiver is None:
            self.abandon()
            return
        self._at_s = time.monotonic()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end(whole=False)
            self.abandon()

    def connection_lost(self, exc: Exception | None) -> None:
        """A body without a length ends so; any other one breaks off."""
        self._transport = None
        if self._receiver is not None:
            self._at_s = time.monotonic()
            headers = self._headers
            unbounded = b"content-length" not in headers and b"transfer-encoding" not in headers
            self._end(whole=exc is None and bool(headers) and unbounded)

    # httptools' side

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """The whole head; an interim answer (1xx) is nobody's."""
        status = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()
        elif self._receiver is not None:
            self._receiver.head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self._receiver is not None:
            self._receiver.body(data, self._at_s)

    def on_message_complete(self) -> None:
        """The end of an answer."""
        if self._receiver is None or self._parser.get_status_code() < 200:
            return
        keep = self._parser.should_keep_alive()
        self._end(whole=True)
        if keep:
            self.idle_since_s = self._at_s
            self._give_back(self)
        else:
            self.abandon()

    def _end(self, *, whole: bool) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.ended(whole=whole, at_s=self._at_s)


class Connections:
    """All connections to one address. No limit but the open files."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Connection] = []

    def idle(self) -> Connection | None:
        """One that is open and fresh; the caller has it to itself."""
        fresh_s = time.monotonic() - IDLE_S_MAX
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and connection.idle_since_s >= fresh_s:
                return connection
            connection.abandon()
        return None

    async def open(self) -> Connection:
        """A new one. Raises OSError (TimeoutError is one) where it cannot be had."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, connection = await loop.create_connection(
                lambda: Connection(self.give_back),
                self._address.host,
                self._address.port,
                ssl=self._address.tls,
            )
        return connection

    def give_back(self, connection: Connection) -> None:
        """It waits for its next request."""
        self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().abandon()

"""The gateway's HTTP protocol under a small application, and raw sockets that speak to it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
import uvloop
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from gateway.http.protocol import bounded_protocol

HEAD_MS_MAX = 400
DRAIN_MS_MAX = 300
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
STREAM = b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKED = b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class App:
    """`/` answers with the body's size, `/headers` with the names of headers seen, `/early` at
    once, `/stream` writes until its client leaves."""

    def __init__(self) -> None:
        self.requests = 0
        self.left = threading.Event()
        self.may_end = threading.Event()

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        assert scope["type"] == "http"
        self.requests += 1
        if scope["path"] == "/stream":
            await self._stream(receive, send)
            return
        size, more = 0, scope["path"] != "/early"
        while more:
            message = await receive()
            if message["type"] != "http.request":
                self.left.set()
                return
            size += len(message["body"])
            more = message["more_body"]
        body = b"%d" % size
        if scope["path"] == "/headers":
            body = b" ".join(name for name, _ in scope["headers"])
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _stream(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        if not self.may_end.is_set():
            message = await receive()
            assert message["type"] == "http.disconnect", message
            self.left.set()
        await send({"type": "http.response.body", "body": b"last", "more_body": False})


class Served:
    """A running server and clients of it."""

    def __init__(self, app: App, port: int) -> None:
        self.app = app
        self._port = port

    def connect(self) -> socket.socket:
        """A new connection."""
        return socket.create_connection(("127.0.0.1", self._port), timeout=5)

    def exchange(self, *parts: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        with self.connect() as client:
            for part in parts:
                client.sendall(part)
            return rest(client)


def rest(client: socket.socket) -> bytes:
    """All bytes until the end of the connection."""
    received = b""
    while piece := client.recv(65536):
        received += piece
    return received


def until(client: socket.socket, mark: bytes) -> bytes:
    """All bytes up to the first read with this in them."""
    received = b""
    while mark not in received:
        piece = client.recv(65536)
        assert piece, received
        received += piece
    return received


def closes_within(client: socket.socket, seconds: float, drip: bytes) -> bool:
    """Whether the server stops taking what is dripped to it, not only stops writing."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            client.sendall(drip)
        except OSError:
            return True
        time.sleep(0.01)
    return False


def swallowed(client: socket.socket, piece: bytes, *, at_most: int) -> int:
    """How many bytes go out before the server cuts the connection off."""
    sent = 0
    while sent < at_most:
        try:
            sent += client.send(piece)
        except OSError:
            break
    return sent


@contextmanager
def running_protocol() -> Iterator[Served]:
    """A server of production's kind (uvloop) with short deadlines, on a port of its own."""
    app = App()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=bounded_protocol(
            header_bytes_max=64 * 1024, head_ms_max=HEAD_MS_MAX, drain_ms_max=DRAIN_MS_MAX
        ),
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: uvloop.run(server.serve([listener])))
    thread.start()
    try:
        yield Served(app, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()

"""A host that stands for a hosted provider: it counts every byte, and answers as OpenAI would."""

import http.server
import json
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

WORDS = ("From", " afar", ".")
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


@dataclass
class Canary:
    """What it saw, over all connections."""

    url: str = ""
    connections: int = 0
    received: bytes = b""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    canary: Canary


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        canary = cast("_Server", self.server).canary
        with canary.lock:
            canary.connections += 1
        connection = cast("socket.socket", self.request)
        seen = b""
        while True:
            try:
                piece = connection.recv(65536)
            except OSError:
                return
            if not piece:
                return
            with canary.lock:
                canary.received += piece
            seen += piece
            body = _body(seen)
            if body is not None:
                canary.bodies.append(body)
                connection.sendall(_answer())
                return


def _body(seen: bytes) -> dict[str, Any] | None:
    head, found, body = seen.partition(b"\r\n\r\n")
    if not found:
        return None
    sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if len(body) < int(sizes[0].partition(b":")[2]):
        return None
    parsed: dict[str, Any] = json.loads(body)
    return parsed


def _answer() -> bytes:
    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        base = {"id": "chatcmpl-afar", "object": "chat.completion.chunk", "created": 1}
        return b"data: " + json.dumps({**base, "choices": choices, **more}).encode() + b"\n\n"

    pieces = [
        event([{"index": 0, "delta": {"role": "assistant", "content": word}}]) for word in WORDS
    ]
    pieces.append(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    pieces.append(event([], usage=USAGE))
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: afar-1\r\n"
        b"connection: close\r\n\r\n"
    )
    return head + b"".join(pieces) + b"data: [DONE]\n\n"


@contextmanager
def running_canary() -> Iterator[Canary]:
    """A canary on a free port of this machine."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.canary = Canary(url=f"http://127.0.0.1:{server.server_address[1]}/v1")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.canary
        server.shutdown()
        thread.join()


@contextmanager
def black_hole() -> Iterator[str]:
    """An address at which connecting hangs: its queue is full and nothing is ever accepted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for filler in fillers:
            filler.close()


@contextmanager
def redirecting_worker(target: str, *, status: int, paths: Sequence[str]) -> Iterator[str]:
    """A worker that seems well, but sends what is asked of these paths on to `target`, and has no
    other way to answer a completion than with a 500."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer()

        def _answer(self) -> None:
            body = b'{"loads": [{}]}'
            if self.path.startswith(tuple(paths)):
                self.send_response(status)
                self.send_header("location", target + self.path)
            else:
                self.send_response(500 if "completions" in self.path else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing is printed."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()

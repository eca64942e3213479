"""A worker in the test's own process: it speaks SGLang's HTTP, keeps the head of every request it
gets, and answers with what a test wrote down, under headers that no tenant should see."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import engine_events as events

MODEL = "recorded"
GATE_S_MAX = 20.0
HOSTILE_HEADERS = {
    "set-cookie": "engine-cookie=1",
    "x-request-id": "engine-request",
    "x-powered-by": "engine-power",
    "via": "1.1 engine-proxy",
    "retry-after": "99909990999",
    "access-control-allow-origin": "engine-origin",
    "location": "http://engine-location",
    "alt-svc": "engine-alt",
    "content-language": "engine-language",
    "x-ratelimit-limit-requests": "42424242424242",
    "openai-organization": "engine-organisation",
}
"""What the worker sends with every answer. Each value is to be found nowhere else."""


@dataclass
class Seen:
    """One request as it came."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class RecordingWorker:
    """What it saw, and what it answers to a completion."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    status: int = 200
    answer: list[bytes] = field(default_factory=lambda: events.answer(["a", "b"]))
    """Data of events where the status is 200, else the body."""
    comment: bytes = b""
    """Sent before the events, as it is."""
    gate: threading.Event = field(default_factory=threading.Event)
    """Its first byte waits for it."""

    def __post_init__(self) -> None:
        self.gate.set()

    def reset(self) -> None:
        """As it was made."""
        fresh = RecordingWorker()
        self.status, self.answer, self.comment = fresh.status, fresh.answer, fresh.comment
        self.gate.set()
        self.seen.clear()

    @property
    def completions(self) -> list[Seen]:
        """The requests for completions."""
        return [seen for seen in self.seen if "completions" in seen.path]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    worker: RecordingWorker


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "engine-server"
    server: _Server

    def do_GET(self) -> None:
        self._record(b"")
        answers: dict[str, Any] = {
            "/ready": {},
            "/v1/loads": {"loads": [{"num_running_reqs": 0, "num_waiting_reqs": 0}]},
            "/v1/models": {"data": [{"id": MODEL, "max_model_len": 1000}]},
            "/server_info": {"version": "0.5.23", "enable_cache_report": True},
        }
        found = answers.get(self.path)
        self._send(404 if found is None else 200, json.dumps(found).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        self._record(body)
        if self.path == "/v1/tokenize":
            self._send(200, b'{"count":5}')
        elif "completions" in self.path:
            self._complete()
        else:
            self._send(200, b"")

    def _record(self, body: bytes) -> None:
        self.server.worker.seen.append(Seen(self.path, self.headers.items(), body))

    def _complete(self) -> None:
        worker = self.server.worker
        worker.gate.wait(GATE_S_MAX)
        if worker.status != 200:
            self._send(worker.status, b"".join(worker.answer))
            return
        data = b"".join(b"data: " + event + b"\n\n" for event in [*worker.answer, b"[DONE]"])
        self._send(200, worker.comment + data, "text/event-stream")

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        for name, value in HOSTILE_HEADERS.items():
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def recording_worker() -> Iterator[RecordingWorker]:
    """Such a worker on a free port, until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.worker = RecordingWorker(url=f"http://127.0.0.1:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield server.worker
        finally:
            server.shutdown()
            serving.join()

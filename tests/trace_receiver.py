"""A collector in the test's own process: it takes traces by OTLP over HTTP, as protobuf, and can be
slow or fail."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gateway.telemetry.trace_names import ATTEMPT, OPERATION

GATE_S_MAX = 20.0
WAIT_S = 15.0
_NAMES = {Span.SPAN_KIND_SERVER: OPERATION, Span.SPAN_KIND_CLIENT: ATTEMPT}


@dataclass(frozen=True)
class Received:
    """One span as it came."""

    span: Span
    resource: dict[str, Any]

    @property
    def name(self) -> str:
        """As `trace_names.SPANS` has it."""
        return _NAMES.get(self.span.kind, self.span.name)

    @property
    def says(self) -> dict[str, Any]:
        """Its attributes."""
        return {each.key: _value(each.value) for each in self.span.attributes}

    @property
    def failed(self) -> bool:
        """Whether its status is an error."""
        return self.span.status.code == Status.STATUS_CODE_ERROR

    @property
    def trace_id(self) -> str:
        """In hex."""
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        """In hex."""
        return self.span.span_id.hex()

    @property
    def parent_id(self) -> str:
        """In hex, empty where it has none."""
        return self.span.parent_span_id.hex()

    @property
    def ms(self) -> float:
        """How long it took."""
        return (self.span.end_time_unix_nano - self.span.start_time_unix_nano) / 1e6


@dataclass
class TraceReceiver:
    """What it took, and how it answers."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    gate: threading.Event = field(default_factory=threading.Event)
    """Its answers wait for it."""

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def spans(self) -> list[Received]:
        """All of them, in the order in which they came."""
        return [
            Received(
                span, {each.key: _value(each.value) for each in of_resource.resource.attributes}
            )
            for body in list(self.bodies)
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def trace_of(self, request_id: str, *, within_s: float = WAIT_S) -> list[Received]:
        """The spans of a request, its own first, once they are there. Its trace may have others: a
        client may send as many requests in one as it likes."""
        deadline = time.monotonic() + within_s
        while True:
            spans = self.spans
            for root in spans:
                if root.name == OPERATION and root.says["weir.request_id"] == request_id:
                    return [each for _, each in tree([root, *spans])]
            assert time.monotonic() < deadline, f"no trace of {request_id}"
            time.sleep(0.02)


def tree(spans: list[Received]) -> list[tuple[int, Received]]:
    """The first and what lies below it, in the order in which they began, each with how deep."""

    def below(parent: Received, depth: int) -> Iterator[tuple[int, Received]]:
        yield depth, parent
        inside = [each for each in spans if each.parent_id == parent.span_id]
        for each in sorted(inside, key=lambda one: one.span.start_time_unix_nano):
            yield from below(each, depth + 1)

    return list(below(spans[0], 0))


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind or "string_value")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    receiver: TraceReceiver


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        receiver = self.server.receiver
        receiver.gate.wait(GATE_S_MAX)
        taken = receiver.status == 200 and self.path == "/v1/traces"
        if taken:
            receiver.bodies.append(body)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(receiver.status if self.path == "/v1/traces" else 404)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Such a collector on a free port, until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.receiver = TraceReceiver(url=f"http://127.0.0.1:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield server.receiver
        finally:
            server.receiver.gate.set()
            server.shutdown()
            serving.join()

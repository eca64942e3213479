"""One HTTP request as it came in: what every step of the straight line may read."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from gateway.serving.ports import ClientConnection
from gateway.telemetry.tracing import NO_TRACE, RequestTrace
from gateway.wire.bodies import Endpoint


@dataclass(frozen=True)
class Arrival:
    """`request_id` carries `at_ms` (Unix ms); `at_us` is the same instant on the clock that never
    jumps, in microseconds. Header names are lower case."""

    endpoint: Endpoint
    headers: Mapping[bytes, bytes]
    client_ip: str | None
    connection: ClientConnection
    request_id: UUID
    at_ms: int
    at_us: int
    trace: RequestTrace = NO_TRACE

    @property
    def id_header(self) -> tuple[bytes, bytes]:
        """`x-request-id`, on every answer."""
        return b"x-request-id", str(self.request_id).encode()

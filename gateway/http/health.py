"""`/healthz`, `/readyz`, `/metrics`: does the process live, does it serve, what has it counted."""

from collections.abc import Awaitable, Callable

from litestar import Response, get
from litestar.types import ControllerRouterHandler
from prometheus_client import CONTENT_TYPE_LATEST

from gateway.http.openapi_answers import HealthAnswer, ReadinessAnswer
from gateway.http.openapi_operations import described
from gateway.serving.condition import Condition
from gateway.telemetry.reading import prometheus_text
from gateway.telemetry.shared_reading import SharedReading


def health_handlers(
    condition: Callable[[], Condition], refresh_gauges: Callable[[], Awaitable[None]]
) -> list[ControllerRouterHandler]:
    """The three handlers. `condition` is what is degraded now."""

    async def read() -> bytes:
        await refresh_gauges()
        return await prometheus_text()

    reading = SharedReading(read)

    @get("/healthz", opt=described(HealthAnswer))
    async def healthz() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @get("/readyz", opt=described(ReadinessAnswer, statuses={503: "Requests are not served."}))
    async def readyz() -> Response[dict[str, object]]:
        """200 where requests are served, 503 where they are not; names what is degraded."""
        now = condition()
        status = "not_ready" if now.unready else "degraded" if now.degraded else "ready"
        return Response(
            {"status": status, "degraded": [*now.unready, *now.degraded]},
            status_code=503 if now.unready else 200,
        )

    @get("/metrics", opt=described(media_type="text/plain"))
    async def metrics() -> Response[bytes]:
        """Prometheus' text format. Who asks within a second of another waits for its end."""
        text = await reading.latest()
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return [healthz, readyz, metrics]

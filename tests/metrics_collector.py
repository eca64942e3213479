"""A collector that takes metrics by OTLP over real HTTP, and fails on demand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric


@dataclass
class Collector:
    """What it was sent. `status` is its answer; until `answers` is set none comes."""

    url: str = ""
    status: int = 200
    bodies: list[bytes] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    async def take(self, request: web.Request) -> web.Response:
        """One push."""
        self.bodies.append(await request.read())
        self.asked.put_nowait(None)
        await self.answers.wait()
        return web.Response(status=self.status, text="the collector's own words")

    @property
    def latest(self) -> ExportMetricsServiceRequest:
        """The last push, decoded."""
        found = ExportMetricsServiceRequest()
        found.ParseFromString(self.bodies[-1])
        return found

    @property
    def metrics(self) -> dict[str, Metric]:
        """Its metrics by name."""
        (resource,) = self.latest.resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    @property
    def resource(self) -> dict[str, str]:
        """Who sent it."""
        attributes = self.latest.resource_metrics[0].resource.attributes
        return {each.key: each.value.string_value for each in attributes}


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """One on a free port."""
    made = Collector()
    made.answers.set()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/metrics", made.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/v1/metrics"
    try:
        yield made
    finally:
        made.answers.set()
        await runner.cleanup()

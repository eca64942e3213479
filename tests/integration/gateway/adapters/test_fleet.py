"""What a gateway knows of its workers, from real probes."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from memory_ports import MemoryDirectory, StandingClock
from tenant_examples import a_worker

from gateway.adapters.fleet import ProbedFleet
from gateway.adapters.sglang import HttpEngine
from gateway.errors import WorkerFailed


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "127.0.0.1:1", "no-such-host.invalid"])
async def test_a_worker_that_cannot_be_reached_is_unhealthy_and_nothing_more(host: str) -> None:
    """Whatever its address: probing it raises nothing, and a stream to it fails as a worker's."""
    worker = a_worker("w9", url=f"http://{host}")
    engine = HttpEngine(connect_timeout_ms=300, abort_drain_ms=100)
    fleet = ProbedFleet(MemoryDirectory(worker), engine, StandingClock())
    try:
        await fleet.probe_all()
        assert [view.healthy for view in fleet.views()] == [False]
        with pytest.raises(WorkerFailed):
            async for _ in engine.stream(worker, "/v1/chat/completions", "u", b"{}"):
                pass
    finally:
        await fleet.aclose()
        await engine.aclose()


async def _ready(_request: web.Request) -> web.Response:
    return web.Response()


async def _loads(_request: web.Request) -> web.Response:
    return web.json_response({"loads": [{"num_running_reqs": 2, "num_waiting_reqs": 1}]})


async def test_a_worker_that_goes_away_is_unhealthy_at_the_next_probe() -> None:
    """Q15: nothing is routed to it from then on, also where no stream has met its end."""
    app = web.Application()
    app.router.add_get("/ready", _ready)
    app.router.add_get("/v1/loads", _loads)
    server = TestServer(app)
    await server.start_server()
    worker = a_worker("w1", url=str(server.make_url("")).rstrip("/"))
    engine = HttpEngine(connect_timeout_ms=300, abort_drain_ms=100)
    fleet = ProbedFleet(MemoryDirectory(worker), engine, StandingClock())
    try:
        await fleet.probe_all()
        (view,) = fleet.views()
        assert (view.healthy, view.running, view.waiting) == (True, 2, 1)
        await server.close()
        await fleet.probe_all()
        assert [view.healthy for view in fleet.views()] == [False]
    finally:
        await fleet.aclose()
        await engine.aclose()
        await server.close()

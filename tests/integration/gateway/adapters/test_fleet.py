"""What a gateway knows of its workers, from real probes."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from memory_ports import MemoryDirectory, StandingClock
from tenant_examples import a_worker

from gateway.adapters.fleet import ProbedFleet
from gateway.adapters.sglang import HttpEngine
from gateway.domain.engine_facts import EngineFacts
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


class AskedEngine:
    """An SGLang that loads, and says of itself what a test wrote down."""

    def __init__(self) -> None:
        self.info: web.Response | dict[str, object] = {}
        self.asked = 0
        self.up = True
        app = web.Application()
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/v1/loads", _loads)
        app.router.add_get("/server_info", self._server_info)
        self.server = TestServer(app)

    async def _ready(self, _request: web.Request) -> web.Response:
        return web.Response(status=200 if self.up else 503)

    async def _server_info(self, _request: web.Request) -> web.Response:
        self.asked += 1
        if isinstance(self.info, dict):
            return web.json_response(self.info)
        return web.Response(status=self.info.status, text="no")


@pytest.fixture
async def asked() -> AsyncIterator[tuple[AskedEngine, ProbedFleet, StandingClock]]:
    """Such an engine, and a fleet that probes it."""
    engine = AskedEngine()
    await engine.server.start_server()
    worker = a_worker("w1", url=str(engine.server.make_url("")).rstrip("/"))
    http = HttpEngine(connect_timeout_ms=300, abort_drain_ms=100)
    clock = StandingClock()
    fleet = ProbedFleet(MemoryDirectory(worker), http, clock)
    yield engine, fleet, clock
    await fleet.aclose()
    await http.aclose()
    await engine.server.close()


Asked = tuple[AskedEngine, ProbedFleet, StandingClock]


async def test_an_engine_is_asked_what_it_is_when_it_comes_up_and_each_minute(asked: Asked) -> None:
    """Known from the first good probe on; asked again after 60 s, and after it was away."""
    engine, fleet, clock = asked
    engine.info = {"version": "0.5.23", "max_total_num_tokens": 1000, "page_size": "odd"}
    await fleet.probe_all()
    (view,) = fleet.views()
    assert view.healthy
    assert view.engine == EngineFacts(version="0.5.23", pool_tokens=1000)
    clock.advance(59_000)
    await fleet.probe_all()
    assert engine.asked == 1
    engine.info = {"max_total_num_tokens": 500}
    clock.advance(1_000)
    await fleet.probe_all()
    assert (engine.asked, fleet.views()[0].engine.pool_tokens) == (2, 500)
    engine.up = False
    await fleet.probe_all()
    engine.up = True
    engine.info = {"max_total_num_tokens": 700}
    await fleet.probe_all()
    assert fleet.views()[0].engine.pool_tokens == 700


async def test_an_engine_that_does_not_say_what_it_is_is_healthy(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked again, and the log has it once; what was known holds until it was away."""
    engine, fleet, clock = asked
    engine.info = web.Response(status=500)
    for _ in range(3):
        await fleet.probe_all()
        clock.advance(10_000)
    (view,) = fleet.views()
    assert (view.healthy, view.engine, engine.asked) == (True, EngineFacts(), 3)
    assert len([line for line in caplog.messages if "did not say" in line]) == 1
    engine.info = {"max_total_num_tokens": 500}
    await fleet.probe_all()
    engine.info = web.Response(status=500)
    clock.advance(60_000)
    await fleet.probe_all()
    assert fleet.views()[0].engine.pool_tokens == 500
    fleet.failed("w1")
    await fleet.probe_all()
    assert fleet.views()[0].engine == EngineFacts()


async def test_what_weir_needs_and_an_engine_has_off_is_warned_of_once(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    """The cache report and priorities; nothing where both are on, or it does not say."""
    engine, fleet, clock = asked
    for on in (True, None, False, False):
        engine.info = {"enable_cache_report": on, "enable_priority_scheduling": on}
        await fleet.probe_all()
        if on is not False:
            assert "--enable" not in caplog.text
        clock.advance(60_000)
    assert caplog.text.count("--enable-cache-report") == 1
    assert caplog.text.count("--enable-priority-scheduling") == 1

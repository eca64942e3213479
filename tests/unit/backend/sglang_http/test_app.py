"""The HTTP application over an engine that has not come up."""

import json
from dataclasses import replace

import pytest
from litestar.testing import AsyncTestClient

from backend.sglang_http.app import create_app
from backend.simulated.engine import SimulatedEngine
from backend.simulated.settings import SimulatedSettings


async def test_not_ready() -> None:
    """While the engine loads, probes and requests are 503, and information says so."""
    engine = SimulatedEngine(SimulatedSettings())
    async with AsyncTestClient(create_app(engine)) as client:
        for path in ("/ready", "/health"):
            assert (await client.get(path)).status_code == 503
        for path, body in (
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
            ("/v1/completions", {"prompt": "hi"}),
            ("/v1/tokenize", {"prompt": "hi"}),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, 503)
        assert (await client.get("/server_info")).json()["status"] == "starting"
        assert (await client.get("/v1/models")).status_code == 200
        await engine.start()
        assert (await client.get("/ready")).status_code == 200
        await engine.stop()


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/loads", "/v1/loads?format=prometheus", "/metrics", "/server_info", "/model_info"),
        *("/v1/models", "/weir/ledger"),
    ],
)
async def test_what_shows_figures_names_the_engine(path: str) -> None:
    """Whoever reads them sees that they are simulated, also where the model has another name."""
    engine = SimulatedEngine(SimulatedSettings(model="m"))
    engine.info = replace(engine.info, model_path="p", description="d")
    async with AsyncTestClient(create_app(engine)) as client:
        assert "simulated" in (await client.get(path)).text


async def test_unexpected_failure_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected failure is a 500 in SGLang's shape; its text reaches neither client nor log."""
    engine = SimulatedEngine(SimulatedSettings())

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("confidential")

    monkeypatch.setattr(engine, "published", broken)
    async with AsyncTestClient(create_app(engine), raise_server_exceptions=False) as client:
        answer = await client.get("/v1/loads")
    assert answer.status_code == 500
    assert list(json.loads(answer.text)) == ["object", "message", "type", "param", "code"]
    assert "confidential" not in answer.text + caplog.text

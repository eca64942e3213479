"""`/metrics`: SGLang's families, and only what is known."""

import asyncio

from litestar.testing import AsyncTestClient
from prometheus_client.parser import text_string_to_metric_families

from backend.sglang_http.app import create_app
from backend.sglang_http.engine import GenerationRequest, Load, Prompt, Sampling
from backend.simulated.engine import SimulatedEngine
from backend.simulated.settings import SimulatedSettings

GAUGES = (
    *("num_running_reqs", "num_queue_reqs", "token_usage", "num_used_tokens", "gen_throughput"),
    *("kv_available_tokens", "kv_evictable_tokens", "kv_used_tokens", "max_total_num_tokens"),
    *("cache_hit_rate", "num_retracted_reqs"),
)
COUNTERS = (
    *("prompt_tokens", "generation_tokens", "num_requests", "num_aborted_requests"),
    *("num_retracted_requests", "cached_tokens", "http_responses"),
)
HISTOGRAMS = (
    *("time_to_first_token_seconds", "inter_token_latency_seconds"),
    *("e2e_request_latency_seconds", "queue_time_seconds"),
)


async def scraped(client: AsyncTestClient) -> dict[str, tuple[str, float]]:  # type: ignore[type-arg] # of any application
    """The kind of each family, and the sum of its samples."""
    text = (await client.get("/metrics")).text
    return {
        family.name: (family.type, sum(sample.value for sample in family.samples))
        for family in text_string_to_metric_families(text)
    }


async def test_families() -> None:
    """All that a gateway reads, each of its kind; what was served is counted, apart by engine."""
    engine, other = (SimulatedEngine(SimulatedSettings(speed=50)) for _ in range(2))
    await engine.start()
    sampling = Sampling(4, min_tokens=4)
    asked = GenerationRequest("r", Prompt("", (1, 2, 3)), sampling, stream=False)
    generation = engine.submit(asked)
    while (await asyncio.wait_for(generation.take(), 20)).finish is None:
        pass
    async with AsyncTestClient(create_app(engine)) as client:
        for _ in range(2):
            assert (await client.get("/of/nobody")).status_code == 404
        families = await scraped(client)
    await engine.stop()
    for names, kind in ((GAUGES, "gauge"), (COUNTERS, "counter"), (HISTOGRAMS, "histogram")):
        assert {name: families[f"sglang:{name}"][0] for name in names} == dict.fromkeys(names, kind)
    assert families["sglang:generation_tokens"][1] == 4
    assert families["sglang:prompt_tokens"][1] == 3
    assert families["sglang:http_responses"][1] == 2
    assert families["weir_simulated_step_lag_ms"][0] == "gauge"
    async with AsyncTestClient(create_app(other)) as client:
        assert (await scraped(client))["sglang:generation_tokens"][1] == 0


async def test_what_is_not_known_is_absent() -> None:
    """An engine without a scheduler of its own has no figures of one; nothing seen, no latency."""
    engine = SimulatedEngine(SimulatedSettings())
    engine.load = lambda: Load(0, 0, 0, 0, None, 0.0)  # type: ignore[method-assign] # as a plain engine's
    async with AsyncTestClient(create_app(engine)) as client:
        families = await scraped(client)
    for name in ("kv_evictable_tokens", "cache_hit_rate", "num_retracted_reqs", *HISTOGRAMS):
        assert f"sglang:{name}" not in families
    assert "weir_simulated_step_lag_ms" not in families

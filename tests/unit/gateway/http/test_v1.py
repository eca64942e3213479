"""Which errors are OpenAI's, and what is said of models."""

from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import AsyncTestClient
from memory_gateway import MemoryGateway
from tenant_examples import SECRET, a_worker

from gateway.domain.engine_facts import EngineFacts
from gateway.http.v1 import is_openais, one_each, v1_handlers
from gateway.serving.queue_looks import PoolLooks
from gateway.settings import Settings
from gateway.wire.traceparent import read_traceparent


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/models", "//v1/models", "/v1/nothing"])
def test_what_the_router_reads_as_v1_is_openais(path: str) -> None:
    """Also with a slash too many: the router takes it for the same path."""
    assert is_openais(path)


@pytest.mark.parametrize("path", ["/", "/v1x", "/admin/v1", "/admin/v1/tenants", "/v2", ""])
def test_what_is_not_is_not(path: str) -> None:
    """Everything else answers with a problem."""
    assert not is_openais(path)


@pytest.mark.parametrize(
    ("engine", "facts", "owner"),
    [
        ("sglang", EngineFacts(), "weir"),
        ("local", EngineFacts(simulated=False), "weir"),
        ("simulated", EngineFacts(), "weir-simulated"),
        ("sglang", EngineFacts(simulated=True), "weir-simulated"),
    ],
)
async def test_a_model_says_whether_figures_of_it_are_simulated(
    tmp_path: Path, engine: str, facts: EngineFacts, owner: str
) -> None:
    """One such worker among others is enough, as registered or by its own word. Nothing else of
    a worker is shown."""
    memory = MemoryGateway(workers=1)
    memory.directory.all_workers.append(a_worker("odd", engine=engine))
    memory.fleet.facts["odd"] = facts
    settings = Settings(
        database_url="postgresql://nowhere/none", redis_url="redis://nowhere", journal_dir=tmp_path
    )
    handlers = v1_handlers(
        completions=memory.completions,
        directory=memory.directory,
        fleet=memory.fleet,
        ledger=memory.ledger,
        clock=memory.clock,
        settings=settings,
        looks=PoolLooks(memory.queues.gateway("g"), memory.clock, is_open=lambda: True),
    )
    async with AsyncTestClient(Litestar(handlers)) as client:
        answer = await client.get("/v1/models", headers={"authorization": f"Bearer {SECRET}"})
    card = {"id": "m", "object": "model", "created": 0, "owned_by": owner}
    assert answer.json() == {"object": "list", "data": [card]}


def test_of_several_traces_none_is_gone_on_with() -> None:
    """Which of them is meant cannot be known: a trace of our own begins."""
    value = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    once = one_each({"headers": [(b"traceparent", value)]})
    twice = one_each({"headers": [(b"traceparent", value)] * 2})
    assert read_traceparent(once[b"traceparent"]) is not None
    assert read_traceparent(twice[b"traceparent"]) is None

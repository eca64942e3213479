"""What a request makes of what its engines say of themselves."""

import json
from typing import Any

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, error_of
from scripted_engine import Step
from tenant_examples import a_key

from billing.domain.usage_record import Outcome
from gateway.domain.engine_facts import EngineFacts
from gateway.domain.tenant import RequestClass
from gateway.errors import WorkerUnreachable

SMALL = EngineFacts(context_tokens=1000, pool_tokens=60, input_bound_tokens=54, page_tokens=1)
LARGE = EngineFacts(context_tokens=1000, pool_tokens=500, input_bound_tokens=494, page_tokens=1)


def body_of(gateway: MemoryGateway, stream: int = 0) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(gateway.engine.streams[stream].body)
    return body


@pytest.mark.parametrize(
    ("facts", "interactive", "batch"),
    [
        (EngineFacts(priority_scheduling=True), 1, 0),
        (EngineFacts(priority_scheduling=True, lowest_priority_first=True), 0, 1),
        (EngineFacts(priority_scheduling=False), None, None),
        (EngineFacts(), None, None),
    ],
)
async def test_the_engine_is_told_who_goes_first(
    facts: EngineFacts, interactive: int | None, batch: int | None
) -> None:
    """Q02, Q03: by the class of the request, in the engine's own direction; a key's class bounds
    what its request may ask for."""
    keys = {"interactive": a_key(), "batch": a_key(request_class=RequestClass.BATCH)}
    for name, fields, expected in (
        ("interactive", {}, interactive),
        ("interactive", {"service_tier": "flex"}, batch),
        ("batch", {"service_tier": "priority"}, batch),
    ):
        gateway = MemoryGateway(events.answer(["a"]))
        gateway.fleet.facts = {"w0": facts}
        gateway.directory.keys = [keys[name]]
        await gateway.post(**fields)
        gateway.assert_one_of_each(Outcome.COMPLETED)
        assert body_of(gateway).get("priority") == expected


async def test_a_request_goes_where_it_fits() -> None:
    """Q28: 5 and 56 do not fit a pool of 60, which would cut them down: the larger one gets it,
    however much runs there."""
    gateway = MemoryGateway(events.answer(["a"]), workers=2)
    gateway.fleet.facts = {"w0": SMALL, "w1": LARGE}
    gateway.fleet.open["w1"] = 7
    await gateway.post(max_tokens=56)
    assert [stream.worker.id for stream in gateway.engine.streams] == ["w1"]
    gateway.fleet.open["w1"] = 0
    gateway.assert_one_of_each(Outcome.COMPLETED)


async def test_nor_is_it_tried_again_where_it_does_not_fit() -> None:
    """The other worker has no room for it: the first one's failure is the answer."""
    script: list[Step] = [WorkerUnreachable("gone")]
    gateway = MemoryGateway(script, workers=2)
    gateway.fleet.facts = {"w0": SMALL, "w1": LARGE}
    client = await gateway.post(max_tokens=56)
    assert client.status == 502
    assert len(gateway.engine.streams) == 1
    gateway.assert_one_of_each(Outcome.WORKER_FAILED)


async def test_what_no_engine_holds_is_refused_before_anything_is_held() -> None:
    """400 with the tokens and the room, where SGLang would answer with less than was asked for."""
    gateway = MemoryGateway(workers=2)
    gateway.fleet.facts = {"w0": SMALL, "w1": LARGE}
    client = await gateway.post(max_tokens=494)
    error = error_of(client)
    assert (client.status, error["code"]) == (400, "context_length_exceeded")
    assert "5 prompt tokens and up to 494 output tokens" in error["message"]
    assert "a worker of m holds 498 tokens" in error["message"]
    gateway.assert_nothing_admitted()


async def test_a_default_maximum_is_what_fits() -> None:
    """The gateway's own default is 100; 55 prompt tokens fit the pool of 60 no more, and of 110
    leave 53."""
    gateway = MemoryGateway(events.answer(["a"]), workers=2)
    middle = EngineFacts(context_tokens=1000, pool_tokens=110, input_bound_tokens=104)
    gateway.fleet.facts = {"w0": SMALL, "w1": middle}
    gateway.tokenizer.tokens = 55
    await gateway.post(max_tokens=None)
    assert gateway.engine.streams[0].worker.id == "w1"
    assert body_of(gateway)["max_tokens"] == 53
    gateway.assert_one_of_each(Outcome.COMPLETED)

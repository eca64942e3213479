"""The hosted fallback on the straight line: when it is used, and when nothing may go there."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import engine_events as events
import pytest
from hosted_examples import a_provider
from memory_gateway import MemoryGateway, data_of, error_of, text_of, until
from scripted_engine import HANG, Step
from tenant_examples import a_key, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.circuit import CircuitState
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.tenant import DataPolicy, Limits
from gateway.errors import WorkerFailed, WorkerUnreachable
from gateway.serving.ports import EngineRefused

ALLOWED = Limits(data_policy=DataPolicy.HOSTED_ALLOWED)
ONLY = Limits(data_policy=DataPolicy.SELF_HOSTED_ONLY)
FORMS = pytest.mark.parametrize("stream", [True, False])
REFUSED = WorkerUnreachable("refused")


def a_gateway(
    *scripts: Sequence[Step],
    workers: int = 0,
    limits: Limits = ALLOWED,
    providers: Sequence[HostedProvider] | None = None,
) -> MemoryGateway:
    """A gateway with a provider, for a tenant that may use it."""
    gateway = MemoryGateway(*scripts, workers=workers)
    gateway.directory.one_tenant = a_tenant(limits)
    gateway.directory.all_providers = [a_provider()] if providers is None else [*providers]
    return gateway


def sent(gateway: MemoryGateway, index: int = -1) -> dict[str, Any]:
    """The body of a stream."""
    found: dict[str, Any] = json.loads(gateway.engine.streams[index].body)
    return found


def circuit_of(gateway: MemoryGateway, provider: str = "hosted:acme-ai") -> CircuitState:
    """The state of a provider's circuit now."""
    circuit = gateway.hosted._circuits[provider]
    return circuit.state(gateway.clock.monotonic_us() // 1000)


@FORMS
async def test_no_worker_at_all(stream: bool) -> None:
    """The provider serves; the row says so, with what the attempt cost."""
    usage = events.usage(1_000, 50, cached=900)
    gateway = a_gateway([*events.answer(["a", "b"])[:-1], usage])
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert (record.provider, record.worker_id) == ("hosted:acme-ai", "hosted:acme-ai")
    assert (record.prompt_tokens, record.cached_prompt_tokens, record.output_tokens) == (
        1_000, 900, 50,
    )  # fmt: skip
    (attempt,) = record.attempts
    assert attempt.provider == "hosted:acme-ai"
    assert attempt.provider_cost_pico == 100 * 400_000 + 900 * 100_000 + 50 * 1_600_000
    assert attempt.provider_request_id == "engine-id"
    assert b"big-m" not in client.sent
    assert b"engine-id" not in client.sent


@FORMS
@pytest.mark.parametrize("workers", [1, 2, 3])
async def test_workers_that_cannot_be_reached(workers: int, stream: bool) -> None:
    """Two workers at most are tried, then the provider: one lease, one billable attempt, a row
    for each (C13, D15)."""
    tried = min(workers, 2)
    gateway = a_gateway(*[[REFUSED]] * tried, events.answer(["a"]), workers=workers)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert [a.provider for a in record.attempts] == ["self"] * tried + ["hosted:acme-ai"]
    assert [a.outcome for a in record.attempts][-1] is Outcome.COMPLETED
    assert record.provider == "hosted:acme-ai"


async def test_a_healthy_worker_is_always_preferred() -> None:
    """The provider is a fallback."""
    gateway = a_gateway(events.answer(["a"]), workers=1)
    await gateway.post()
    assert gateway.assert_one_of_each(Outcome.COMPLETED).provider == "self"


@pytest.mark.parametrize("full", [EngineRefused(503, "full"), EngineRefused(429, "busy")])
async def test_a_full_worker_is_no_reason(full: EngineRefused) -> None:
    """It serves, only not this one now: whether to wait or to go is the queue's to say."""
    gateway = a_gateway([full], workers=1)
    client = await gateway.post()
    assert error_of(client)["code"] == "no_capacity"
    assert gateway.assert_one_of_each(Outcome.REFUSED).provider == "self"


async def test_after_the_first_event_it_is_too_late() -> None:
    """What was sent cannot be taken back (INV-14): the explicit error event."""
    gateway = a_gateway([events.role(), events.content("a"), WorkerFailed("died")], workers=1)
    client = await gateway.post(stream=True)
    gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert "error" in data_of(client)[-1]


@pytest.mark.parametrize(
    ("tenant", "key", "header", "age_ms"),
    [
        (Limits(), Limits(), None, 0),
        (ONLY, Limits(), None, 0),
        (ONLY, ALLOWED, None, 0),
        (ALLOWED, ONLY, None, 0),
        (ALLOWED, Limits(), b"self_hosted_only", 0),
        (ALLOWED, Limits(), None, 1_001),
        (ONLY, Limits(), b"hosted_allowed", 0),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
async def test_not_allowed(
    tenant: Limits, key: Limits, header: bytes | None, age_ms: int, workers: int
) -> None:
    """INV-13, Q18, Q19: no stream is even opened, whoever forbids it, and also where the policy
    has not been read for over a second."""
    gateway = a_gateway(*[[REFUSED]] * workers, workers=workers, limits=tenant)
    gateway.directory.keys = [a_key(key)]
    gateway.directory.age_ms = age_ms
    headers = {} if header is None else {b"x-weir-data-policy": header}
    client = await gateway.serve(gateway.a_client(stream=workers == 0), headers=headers)
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert b"retry-after" in client.headers
    assert len(gateway.engine.streams) == workers
    gateway.assert_at_rest()


@pytest.mark.parametrize("change", ["policy", "suspended", "revoked", "gone", "stale"])
async def test_a_permission_that_ends_while_it_connects(change: str) -> None:
    """The last look is between the connection and the first byte."""
    gateway = a_gateway(events.answer(["never"]), workers=0)
    directory = gateway.directory

    def withdraw() -> None:
        if change == "policy":
            directory.one_tenant = a_tenant(ONLY)
        elif change == "suspended":
            directory.one_tenant = a_tenant(ALLOWED, suspended=True)
        elif change == "revoked":
            directory.keys = [a_key(revoked_at_ms=1)]
        elif change == "gone":
            directory.one_tenant = None
        else:
            directory.age_ms = 1_001

    gateway.journal.on_admitted = withdraw
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert gateway.engine.streams == []

    gateway = a_gateway(events.answer(["never"]), workers=0)
    directory = gateway.directory
    gateway.engine.on_connected = withdraw
    client = await gateway.post()
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert [a.outcome for a in record.attempts] == [Outcome.REFUSED]
    assert circuit_of(gateway) is CircuitState.CLOSED
    assert not record.billable


async def test_only_what_the_provider_understands() -> None:
    """Its own name of the model, OpenAI's fields, none of the gateway's, nothing about the user."""
    gateway = a_gateway(events.answer(["a"]))
    await gateway.post(
        temperature=0.5, seed=7, stop=["x"], user="someone", metadata={"a": "b"}, top_k=None,
        response_format={"type": "json_object"}, stream=True,
    )  # fmt: skip
    body = sent(gateway)
    assert body.pop("messages") == [{"role": "user", "content": "hi"}]
    assert body == {
        "model": "big-m", "stream": True, "stream_options": {"include_usage": True},
        "max_tokens": 50, "temperature": 0.5, "seed": 7, "stop": ["x"],
        "response_format": {"type": "json_object"},
    }  # fmt: skip


@pytest.mark.parametrize("field", [{"top_k": 5}, {"regex": "a+"}, {"logit_bias": {"5": 1}}])
async def test_a_field_that_would_be_lost_keeps_it_here(field: dict[str, object]) -> None:
    """Unless the provider is said to understand it."""
    gateway = a_gateway()
    assert error_of(await gateway.post(**field))["code"] == "no_worker"
    gateway = a_gateway(events.answer(["a"]), providers=[a_provider(extensions=tuple(field))])
    await gateway.post(**field)
    assert sent(gateway).items() >= field.items()


async def test_the_newer_name_of_the_maximum() -> None:
    """OpenAI's reasoning models refuse the older one."""
    provider = a_provider(output_limit_field="max_completion_tokens")
    gateway = a_gateway(events.answer(["a"]), providers=[provider])
    await gateway.post()
    body = sent(gateway)
    assert body["max_completion_tokens"] == 50
    assert "max_tokens" not in body


async def test_choices_and_prompt_lists_are_fanned_out_there_too() -> None:
    """One stream each, one row, the sum of what each attempt cost."""
    gateway = a_gateway(*[events.answer(["a"])] * 3)
    client = await gateway.post(n=3, stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert [text_of(client, index) for index in range(3)] == ["a"] * 3
    assert [a.provider for a in record.attempts] == ["hosted:acme-ai"] * 3
    assert all("n" not in sent(gateway, index) for index in range(3))


async def test_no_price_is_no_cost() -> None:
    """Unknown is NULL, never 0."""
    provider = a_provider(models={"m": HostedModel(name="x")})
    gateway = a_gateway(events.answer(["a"]), providers=[provider])
    await gateway.post()
    assert gateway.record.attempts[0].provider_cost_pico is None


async def test_the_next_provider_when_one_fails() -> None:
    """By rank; two at most."""
    first, second = a_provider("one", rank=1), a_provider("two", rank=2)
    gateway = a_gateway([REFUSED], events.answer(["a"]), providers=[second, first])
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert [a.provider for a in record.attempts] == ["hosted:one", "hosted:two"]


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (REFUSED, 503, "no_worker"),
        (WorkerFailed("500"), 502, "worker_failed"),
        (EngineRefused(401, "bad key"), 502, "worker_failed"),
        (EngineRefused(429, "slow down"), 503, "no_capacity"),
    ],
)
async def test_a_provider_that_fails_is_left_alone(
    failure: Exception, status: int, code: str
) -> None:
    """Q15, Q16: five failures open the circuit, nothing is sent for five seconds, then one try."""
    gateway = a_gateway(*[[failure]] * 6, events.answer(["a"]))
    for _ in range(5):
        client = await gateway.post()
        assert (client.status, error_of(client)["code"]) == (status, code)
    assert circuit_of(gateway) is CircuitState.OPEN
    assert error_of(await gateway.post())["code"] == "no_worker"
    assert len(gateway.engine.streams) == 5
    gateway.clock.advance(5_000)
    await gateway.post()
    assert circuit_of(gateway) is CircuitState.OPEN
    gateway.clock.advance(9_999)
    assert circuit_of(gateway) is CircuitState.OPEN
    gateway.clock.advance(1)
    assert (await gateway.post()).status == 200
    assert circuit_of(gateway) is CircuitState.CLOSED


async def test_a_refusal_of_one_request_is_no_failure() -> None:
    """A 400 says something of the request."""
    gateway = a_gateway(*[[EngineRefused(400, "no")]] * 6)
    for _ in range(6):
        assert (await gateway.post()).status == 400
    assert circuit_of(gateway) is CircuitState.CLOSED


async def test_a_client_that_leaves_tells_nothing_of_the_provider() -> None:
    """Neither a failure nor, in the half-open circuit, a place that stays taken."""
    gateway = a_gateway(*[[REFUSED]] * 5, [HANG], events.answer(["a"]))
    gateway.engine.after_abort = [None] * 6
    for _ in range(5):
        await gateway.post()
    gateway.clock.advance(5_000)
    client = gateway.a_client(stream=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(gateway.serve(client))
        await until(lambda: len(gateway.engine.streams) == 6)
        client.leave()
    assert gateway.journal.records[-1].outcome is Outcome.CLIENT_CANCELLED
    assert (await gateway.post()).status == 200


@pytest.mark.parametrize(("script", "after_ms"), [([HANG], 7_000), ([events.role(), HANG], 3_000)])
async def test_a_provider_has_time_outs_of_its_own(script: Sequence[Step], after_ms: int) -> None:
    """To the first event, and between two; shorter than the workers' here."""
    provider = a_provider(first_event_timeout_ms=7_000, stall_timeout_ms=3_000)
    gateway = a_gateway(script, providers=[provider])
    gateway.engine.after_abort = [None]
    watching = asyncio.create_task(gateway.live.run())
    async with asyncio.TaskGroup() as group:
        group.create_task(gateway.post(stream=True))
        await until(lambda: bool(gateway.engine.streams))
        await until(lambda: all(live.saw_event == (len(script) > 1) for live in gateway.live._live))
        gateway.clock.advance(after_ms + 1)
    watching.cancel()
    assert gateway.record.outcome is Outcome.TIMED_OUT
    assert gateway.hosted._circuits["hosted:acme-ai"]._failures


async def test_what_the_workers_took_is_not_counted_against_the_provider() -> None:
    """Nor is a provider that fails a worker that does."""
    gateway = a_gateway(workers=1)
    provider = a_provider(first_event_timeout_ms=7_000, stall_timeout_ms=3_000)
    gateway.directory.all_providers = [provider]

    def takes_long() -> None:
        gateway.clock.advance(6_900)
        for live in gateway.live._live:
            gateway.live._check(live, gateway.clock.monotonic_us())

    gateway.engine.scripts = [[takes_long, REFUSED], [takes_long, *events.answer(["a"])]]
    assert (await gateway.post()).status == 200
    gateway.engine.scripts += [[REFUSED]]
    assert (await gateway.post()).status == 503
    assert gateway.fleet.unhealthy == {"w0"}

"""The hosted fallback on the straight line: when it is used, and when nothing may go there."""

import engine_events as events
import msgspec
import pytest
from hosted_examples import a_provider
from hosted_gateway import ALLOWED, ONLY, REFUSED, a_gateway, sent
from memory_gateway import data_of, error_of, text_of
from tenant_examples import a_key, a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.hosted import HostedProvider
from gateway.domain.tenant import Limits
from gateway.errors import WorkerFailed
from gateway.serving.ports import EngineRefused

FORMS = pytest.mark.parametrize("stream", [True, False])


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
    gateway.directory.keys = [a_key(msgspec.structs.replace(key, max_queued=0))]
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
    of_the_caller = change in ("suspended", "revoked", "gone")
    expected = (401, "invalid_api_key") if of_the_caller else (503, "no_worker")
    assert (client.status, error_of(client)["code"]) == expected
    assert gateway.engine.streams == []

    gateway = a_gateway(events.answer(["never"]), workers=0)
    directory = gateway.directory
    gateway.engine.on_connected = withdraw
    client = await gateway.post()
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert (record.provider, record.worker_id, record.attempts) == ("self", None, ())
    assert not record.billable


@pytest.mark.parametrize("change", ["removed", "disabled", "moved", "another key", "unmapped"])
async def test_a_provider_that_is_changed_while_it_connects(change: str) -> None:
    """Its prompt goes where an administrator wants it now, or nowhere."""
    gateway = a_gateway(events.answer(["never"]))
    now: dict[str, list[HostedProvider]] = {
        "removed": [],
        "disabled": [a_provider(enabled=False)],
        "moved": [a_provider(url="https://elsewhere.example/v1")],
        "another key": [a_provider(api_key="new")],
        "unmapped": [a_provider(models={})],
    }
    gateway.engine.on_connected = lambda: setattr(gateway.directory, "all_providers", now[change])
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert gateway.record.attempts == ()


async def test_batch_waits_for_the_fleet() -> None:
    """DESIGN 10: what may wait is not worth a provider's price."""
    gateway = a_gateway()
    client = await gateway.post(service_tier="flex")
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")


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


@pytest.mark.parametrize(
    "field",
    [
        {"logit_bias": {}}, {"skip_special_tokens": True}, {"min_p": 0}, {"top_k": -1},
        {"repetition_penalty": 1.0}, {"min_tokens": 0}, {"stop_token_ids": []},
    ],
)  # fmt: skip
async def test_a_field_that_says_what_holds_anyhow_is_left_out(field: dict[str, object]) -> None:
    """Nothing is lost with it."""
    gateway = a_gateway(events.answer(["a"]))
    assert (await gateway.post(**field)).status == 200
    assert not set(field) & set(sent(gateway))

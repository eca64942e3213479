"""What is refused before it is admitted: nothing is held, nothing is recorded."""

import asyncio

import engine_events as events
import pytest
from memory_gateway import CHAT, MemoryGateway, error_of, until
from scripted_engine import HANG
from tenant_examples import COUNTED, a_key, a_tenant, a_worker

from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits

FORMS = pytest.mark.parametrize("stream", [True, False])


@FORMS
async def test_a_refusal_is_an_openai_error_with_headers(stream: bool) -> None:
    """S20, S21, S27: 429 before any byte, what limits and when to return; nothing consumed."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(Limits(max_sequences=0, tpm=100))
    client = await gateway.post(stream=stream)
    assert client.status == 400
    gateway.directory.one_tenant = a_tenant(Limits(max_sequences=1), limits_version=2)
    gateway.directory.keys = [a_key(Limits(tpm=60, max_queued=0), limits_version=2)]
    gateway.engine.scripts = [[HANG]]
    first = gateway.a_client()
    running = asyncio.create_task(gateway.serve(first))
    await until(lambda: gateway.engine.streams)
    client = await gateway.post(stream=stream)
    assert (client.status, error_of(client)["type"]) == (429, "sequences")
    assert client.headers[b"retry-after"] == b"1"
    assert client.headers[b"x-ratelimit-remaining-sequences"] == b"0"
    assert client.headers[b"x-ratelimit-limit-tokens"] == b"60"
    assert b"x-request-id" in client.headers
    first.leave()
    await running
    gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)


async def test_what_can_never_fit_is_a_400() -> None:
    """R23: need, limit and scope are named; an endless 429 is not."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(Limits(tpm=54))
    client = await gateway.post()
    assert client.status == 400
    assert "needs 55 tokens a minute; the limit of the tenant is 54" in error_of(client)["message"]
    gateway.assert_nothing_admitted()


async def test_a_bound_never_refuses_without_a_maximum() -> None:
    """R02, DESIGN 5: where no worker counts prompts, a cheap figure may only admit; a small limit
    still serves a short request."""
    gateway = MemoryGateway(events.answer(["a"]))
    gateway.tokenizer.tokens = None
    gateway.directory.one_tenant = a_tenant(Limits(tpm=100))
    await gateway.post(max_tokens=None)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.prompt_tokens == 5
    assert gateway.journal.admissions[0].reserved_tokens == 100


@pytest.mark.parametrize("why", ["ill", "draining", "none"])
async def test_without_a_worker_nothing_is_admitted(why: str) -> None:
    """503 no_worker, at once and with a time to return."""
    gateway = MemoryGateway()
    if why == "ill":
        gateway.fleet.unhealthy = {"w0"}
    else:
        gateway.directory.all_workers = [a_worker(draining=True)] if why == "draining" else []
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert b"retry-after" in client.headers
    gateway.assert_nothing_admitted()


async def test_a_bug_before_admission_is_answered_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """500 in OpenAI's shape, nothing held, nothing of the prompt in the log."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(COUNTED)

    def broken() -> None:
        raise ValueError("a secret prompt")

    gateway.tokenizer.on_count = broken
    client = await gateway.post()
    assert (client.status, error_of(client)["type"]) == (500, "server_error")
    gateway.assert_nothing_admitted()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_value"),
        ({**CHAT, "max_tokens": -1}, 400, "invalid_value"),
        ({**CHAT, "model": "other"}, 404, "model_not_found"),
        ({**CHAT, "max_tokens": 996}, 400, "context_length_exceeded"),
        ({**CHAT, "rid": "x"}, 400, "unsupported_parameter"),
        ({**CHAT, "n": 101}, 400, "invalid_value"),
    ],
)
async def test_a_bad_request_reserves_nothing(body: object, status: int, code: str) -> None:
    """S03: the contract's error, and no store was asked."""
    gateway = MemoryGateway()
    client = await gateway.post(body)
    assert (client.status, error_of(client)["code"]) == (status, code)
    gateway.assert_nothing_admitted()
    assert gateway.ledger.settlements == []


async def test_without_a_key_the_body_is_not_read() -> None:
    """401, and no more."""
    gateway = MemoryGateway()
    client = gateway.a_client(b"{")
    await gateway.serve(client, headers={b"authorization": b"Bearer wrong"})
    assert (client.status, error_of(client)["code"]) == (401, "invalid_api_key")

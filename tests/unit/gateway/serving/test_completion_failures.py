"""An engine that refuses or fails, at every point of a request."""

import asyncio
from collections.abc import Sequence

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, data_of, error_of, text_of, until
from scripted_engine import HANG, Step

from billing.domain.usage_record import Outcome, UsageSource
from gateway.errors import WorkerFailed, WorkerUnreachable
from gateway.serving.ports import EngineRefused
from gateway.wire.assembly import ChoiceAssembly

FORMS = pytest.mark.parametrize("stream", [True, False])
ENGINE_WORDS = "/opt/engine/server.py: Requested 'secret prompt' exceeds"


@FORMS
@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (EngineRefused(400, ENGINE_WORDS), 400, "invalid_value"),
        (EngineRefused(422, ENGINE_WORDS), 400, "invalid_value"),
        (EngineRefused(400, "maximum context length"), 400, "context_length_exceeded"),
        (EngineRefused(503, "The request queue is full."), 503, "no_capacity"),
        (EngineRefused(429, "busy"), 503, "no_capacity"),
        (events.error(503), 503, "no_capacity"),
        (events.error(400, ENGINE_WORDS), 400, "invalid_value"),
        (
            events.error(400, "Input length (16 tokens) exceeds the maximum allowed length (9"),
            400,
            "context_length_exceeded",
        ),
    ],
)
async def test_a_refusal_is_a_status_and_costs_nothing(
    refusal: Step, status: int, code: str, stream: bool
) -> None:
    """S27, D07: also as the first event of a 200 stream; none of the engine's words come out."""
    gateway = MemoryGateway([refusal, events.usage(0, 0)])
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.REFUSED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (0, 0, False)
    assert (client.status, error_of(client)["code"]) == (status, code)
    assert b"secret" not in client.sent
    assert b"engine/" not in client.sent
    assert (b"retry-after" in client.headers) == (status == 503)


@pytest.mark.parametrize("status", [401, 403, 404, 405])
async def test_a_worker_set_up_wrongly_is_no_fault_of_the_tenants(status: int) -> None:
    """An engine that does not know its key or its path has failed: 502, and another may serve."""
    gateway = MemoryGateway([EngineRefused(status, "no")])
    client = await gateway.post()
    gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (client.status, error_of(client)["code"]) == (502, "worker_failed")
    gateway = MemoryGateway([EngineRefused(status, "no")], events.answer(["a"]), workers=2)
    await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)


@FORMS
@pytest.mark.parametrize(
    "failure",
    [
        WorkerUnreachable("refused"),
        WorkerFailed("500"),
        events.error(500),
        b"Internal Server Error",
    ],
)
async def test_before_the_first_event_another_worker_is_tried(failure: Step, stream: bool) -> None:
    """D15, DESIGN 6: same lease, one billable attempt, a row for each."""
    gateway = MemoryGateway([failure], events.answer(["a"]), workers=2)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert [(a.attempt, a.worker_id, a.outcome) for a in record.attempts] == [
        (1, "w0", Outcome.WORKER_FAILED),
        (2, "w1", Outcome.COMPLETED),
    ]
    assert (record.worker_id, record.output_tokens) == ("w1", 1)
    assert (gateway.fleet.unhealthy == {"w0"}) == isinstance(failure, WorkerUnreachable)


@FORMS
@pytest.mark.parametrize("workers", [1, 2, 3])
async def test_it_is_tried_twice_at_most(workers: int, stream: bool) -> None:
    """C02: a 503 where none is left, after the second a 502; the lease is free."""
    gateway = MemoryGateway(*[[WorkerUnreachable("refused")]] * 3, workers=workers)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    expected = (503, "no_worker") if workers < 3 else (502, "worker_failed")
    assert (client.status, error_of(client)["code"]) == expected
    assert len(record.attempts) == min(workers, 2)
    assert not record.billable


async def test_a_full_worker_is_not_the_last_word() -> None:
    """INV-10: another may have room."""
    gateway = MemoryGateway([EngineRefused(503, "full")], events.answer(["a"]), workers=2)
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert [a.outcome for a in record.attempts] == [Outcome.REFUSED, Outcome.COMPLETED]
    assert gateway.fleet.unhealthy == set()


BROKEN: dict[str, Sequence[Step]] = {
    "dies": [WorkerFailed("gone")],
    "ends without finish": [],
    "aborts unasked": [events.finish("abort"), events.usage(5, 2)],
    "error event": [events.error(500, ENGINE_WORDS)],
    "full event": [events.error(503)],
    "half an event": [b'{"choices":[{"del'],
}


@FORMS
@pytest.mark.parametrize("end", BROKEN)
async def test_mid_stream_a_failure_is_explicit(end: str, stream: bool) -> None:
    """INV-14, D07, D08, D16: the error event and no [DONE], or a 502; unbilled, and never more
    tokens than the engine counted."""
    begun = [events.content("a"), events.content("b", usage=events.counts(5, 2))]
    gateway = MemoryGateway([*begun, *BROKEN[end]], events.answer(["x"]), workers=2)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (5, 2, False)
    assert len(record.attempts) == 1
    assert error_of(client)["code"] == "worker_failed"
    assert b"[DONE]" not in client.sent
    assert b"secret" not in client.sent
    assert client.finished
    if stream:
        assert (client.status, text_of(client)) == (200, "ab")
        assert not any(
            choice["finish_reason"] for e in data_of(client)[:-1] for choice in e["choices"]
        )
    else:
        assert client.status == 502


async def test_an_end_without_usage_after_the_finish_is_complete() -> None:
    """The connection breaks after the finish reason: the answer is whole, the count progress."""
    gateway = MemoryGateway(
        [events.content("a", usage=events.counts(5, 1)), events.finish(), WorkerFailed("gone")]
    )
    client = await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.usage_source is UsageSource.ENGINE_PROGRESS
    assert data_of(client)[-1] == "[DONE]"


async def test_one_of_three_choices_fails() -> None:
    """The others are aborted and read to their end; one record with what all three used."""
    gateway = MemoryGateway(
        [events.content("a"), HANG],
        [events.content("b", usage=events.counts(5, 1)), WorkerFailed("gone")],
        events.answer(["c", "c"]),
    )
    gateway.engine.after_abort = [[events.finish("abort"), events.usage(5, 7)]]
    client = await gateway.post(n=3, stream=True)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    third = record.attempts[2].output_tokens
    assert (record.prompt_tokens, record.output_tokens) == (5, 8 + third)
    assert not record.billable
    assert error_of(client)["code"] == "worker_failed"


async def test_one_of_three_choices_is_refused_after_others_began() -> None:
    """What the others generated is recorded: a refusal has no tokens, this has."""
    third = asyncio.Event()
    gateway = MemoryGateway(
        [events.content("a"), HANG], [events.content("b"), HANG], [third, EngineRefused(503, "")]
    )
    client = gateway.a_client(n=3, stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: b'"a"' in client.sent and b'"b"' in client.sent)
    third.set()
    await task
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.output_tokens, record.billable) == (4, False)
    assert error_of(client)["code"] == "no_capacity"


async def test_one_of_three_choices_is_refused_before_any_began() -> None:
    """Nothing was generated: refused, with its status."""
    gateway = MemoryGateway([HANG], [HANG], [EngineRefused(400, "no")])
    gateway.engine.after_abort = [[events.finish("abort"), events.usage(0, 0)]] * 2
    client = await gateway.post(n=3, stream=True)
    gateway.assert_one_of_each(Outcome.REFUSED)
    assert client.status == 400


@FORMS
@pytest.mark.parametrize("choices", [1, 3])
async def test_a_chunk_that_we_cannot_take_ends_it_cleanly(
    choices: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of ours: streams are aborted and read to their end, never hang."""
    flood = [events.content("y") for _ in range(50)]
    script: list[Step] = [events.content("a"), *flood, HANG]
    gateway = MemoryGateway(*[script] * choices)
    client = gateway.a_client(n=choices, stream=stream)
    client.on_write = _fails
    monkeypatch.setattr(ChoiceAssembly, "add", lambda self, data: _fails(data))
    await gateway.serve(client)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert not record.billable
    assert all(each.aborts == 1 for each in gateway.engine.streams)
    assert b"[DONE]" not in client.sent


def _fails(data: bytes) -> None:
    raise RuntimeError("a bug")


@FORMS
@pytest.mark.parametrize("tokens", [49, 1])
async def test_a_length_that_was_cut_down_is_a_failure(tokens: int, stream: bool) -> None:
    """INV-14, SGLang 10c: `length` with fewer tokens than asked says that the engine's pool was
    smaller: no answer, unbilled, and the finish reason never goes out."""
    script = [events.role(), events.content("a"), events.finish("length"), events.usage(5, tokens)]
    gateway = MemoryGateway(script)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.output_tokens, record.billable) == (tokens, False)
    assert record.usage_flags == ("cut_short",)
    assert error_of(client)["code"] == "worker_failed"
    assert client.status == (200 if stream else 502)
    assert b'"length"' not in client.sent
    assert b"[DONE]" not in client.sent


@FORMS
@pytest.mark.parametrize("ending", [[events.usage(5, 50)], [events.usage(5, 51)], []])
async def test_a_length_as_asked_is_an_answer(ending: list[Step], stream: bool) -> None:
    """All that was asked for; or the engine never said how many, which is no reason to fail."""
    script = [events.role(), events.content("a"), events.finish("length"), *ending]
    gateway = MemoryGateway(script)
    client = await gateway.post(stream=stream)
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert b'"length"' in client.sent


@FORMS
@pytest.mark.parametrize("after", [WorkerFailed("reset"), events.error(500)])
async def test_a_length_is_said_also_where_the_stream_breaks_after_it(
    after: Step, stream: bool
) -> None:
    """What was held back to be checked is not lost: the answer has its finish reason."""
    script = [events.role(), events.content("a"), events.finish("length"), after]
    gateway = MemoryGateway(script)
    client = await gateway.post(stream=stream)
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert b'"finish_reason":"length"' in client.sent


@FORMS
async def test_a_grammar_that_cannot_be_followed_is_the_requests_own_fault(stream: bool) -> None:
    """SGLang says so with a 500, once it has begun: no failure of the worker, and no other is
    tried; without a grammar the same words are one."""
    script = [events.role(), events.error(500, "Grammar accept_token failed for req x")]
    gateway = MemoryGateway(script, workers=2)
    client = await gateway.post(ebnf="root ::= root", stream=stream)
    gateway.assert_one_of_each(Outcome.REFUSED)
    assert (error_of(client)["code"], error_of(client)["param"]) == ("invalid_value", "ebnf")
    assert client.status == (200 if stream else 400)
    gateway = MemoryGateway(script)
    assert error_of(await gateway.post(stream=stream))["code"] == "worker_failed"

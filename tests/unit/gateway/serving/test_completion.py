"""What completes, in both forms of an answer."""

import asyncio
import json

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, data_of, text_of, until
from scripted_engine import RecordingConnection

from billing.domain.usage_record import Outcome, UsageSource
from gateway.domain.tenant import EngineKind


async def test_a_stream_completes() -> None:
    """One record with the engine's own counts, before [DONE]; usage only for whom asked (S02)."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    client = await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (5, 2)
    assert (record.usage_source, record.billable) == (UsageSource.ENGINE_FINAL, True)
    assert (client.status, text_of(client)) == (200, "ab")
    assert data_of(client)[-1] == "[DONE]"
    assert all(event["choices"] for event in data_of(client)[:-1])


async def test_usage_comes_last_where_it_was_asked_for() -> None:
    """S01, S02: one chunk without choices, and its counts are the record's."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    client = await gateway.post(stream=True, stream_options={"include_usage": True})
    *chunks, last, done = data_of(client)
    assert (done, last["choices"]) == ("[DONE]", [])
    assert last["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert not any("usage" in chunk for chunk in chunks)
    assert {event["id"] for event in [*chunks, last]} == {f"chatcmpl-{gateway.record.request_id}"}


async def test_a_whole_answer_completes() -> None:
    """The same, in one body; upstream it was a stream all the same."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    client = await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)
    body = json.loads(client.sent)
    assert body["choices"][0]["message"]["content"] == "ab"
    assert body["usage"]["total_tokens"] == 7
    assert client.headers[b"content-length"] == str(len(client.sent)).encode()
    assert client.headers[b"x-request-id"] == str(gateway.record.request_id).encode()
    assert json.loads(gateway.engine.streams[0].body)["stream"] is True


async def test_recorded_then_settled_then_the_last_byte() -> None:
    """DESIGN 4: a crash between leaves a lease that lapses, never a lost bill."""
    gateway = MemoryGateway(events.answer(["a"]))
    client = gateway.a_client(stream=True)
    order: list[str] = []

    def ended() -> None:
        assert gateway.ledger.settlements == []
        assert b"[DONE]" not in client.sent
        order.append("recorded")

    gateway.journal.on_ended = ended
    finish = client.finish

    async def last(data: bytes = b"") -> None:
        assert len(gateway.ledger.settlements) == 1
        order.append("last byte")
        await finish(data)

    client.finish = last  # type: ignore[method-assign] # watched, not replaced
    await gateway.serve(client)
    assert order == ["recorded", "last byte"]


async def test_missing_usage_is_counted() -> None:
    """M25, S01: deltas are counted, the prompt is admission's own count, and the client's usage
    says the same as the record."""
    gateway = MemoryGateway([events.role(), events.content("a"), events.content("b"),
                             events.finish()])  # fmt: skip
    client = await gateway.post(stream=True, stream_options={"include_usage": True})
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (5, 2)
    assert record.usage_source is UsageSource.COUNTED
    assert data_of(client)[-2]["usage"]["total_tokens"] == 7


async def test_a_bound_is_never_billed() -> None:
    """INV-6: where nobody counted the prompt, the record claims none rather than too much."""
    gateway = MemoryGateway([events.content("a"), events.finish()])
    gateway.tokenizer.tokens = None
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (0, 1)
    assert record.usage_flags == ("prompt_unknown",)


async def test_explicit_zero_is_zero() -> None:
    """S09, V41: never replaced by an estimate."""
    gateway = MemoryGateway([events.content("a"), events.finish(), events.usage(0, 0)])
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (0, 0)
    assert record.usage_source is UsageSource.ENGINE_FINAL


async def test_late_usage_is_waited_for() -> None:
    """S26: it comes a while after the finish reason."""
    late = asyncio.Event()
    gateway = MemoryGateway([events.content("a"), events.finish(), late, events.usage(5, 1)])
    client = gateway.a_client(stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: b'"finish_reason":"stop"' in client.sent.replace(b" ", b""))
    assert gateway.journal.records == []
    late.set()
    await task
    assert gateway.assert_one_of_each(Outcome.COMPLETED).usage_source is UsageSource.ENGINE_FINAL


async def test_usage_on_the_last_chunk_is_final() -> None:
    """An engine that sends it with the finish reason."""
    gateway = MemoryGateway([events.content("a"), events.finish(usage=events.counts(5, 1))])
    await gateway.post(stream=True)
    assert gateway.assert_one_of_each(Outcome.COMPLETED).usage_source is UsageSource.ENGINE_FINAL


async def test_more_cached_than_prompt_is_clamped_and_flagged() -> None:
    """S10: never a negative uncached count."""
    gateway = MemoryGateway([events.content("a"), events.finish(), events.usage(5, 1, cached=9)])
    client = await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens) == (5, 5)
    assert record.usage_flags == ("cached_over_prompt",)
    assert json.loads(client.sent)["usage"]["prompt_tokens_details"] == {"cached_tokens": 5}


async def test_three_choices_are_merged() -> None:
    """C10: a stream each, three sequences, the prompt counted once, output added up."""
    gateway = MemoryGateway(*(events.answer([word, word]) for word in "abc"))
    client = await gateway.post(n=3, stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert [text_of(client, index) for index in range(3)] == ["aa", "bb", "cc"]
    assert (record.sequences, record.prompt_tokens, record.output_tokens) == (3, 5, 6)
    assert sorted((a.choice, a.attempt) for a in record.attempts) == [(0, 1), (1, 2), (2, 3)]
    assert len({stream.upstream_id for stream in gateway.engine.streams}) == 3
    assert data_of(client).count("[DONE]") == 1


async def test_a_list_of_prompts_is_one_answer() -> None:
    """Each prompt its own streams, and counted each."""
    chunks = [events.chunk(text="x"), events.chunk(text="", finish="stop"), events.usage(5, 1)]
    gateway = MemoryGateway(*([chunks] * 4))
    client = gateway.a_client({"model": "m", "prompt": ["p", "q"], "n": 2, "max_tokens": 4})
    await gateway.serve(client, endpoint="completions")
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens, record.sequences) == (10, 4, 4)
    body = json.loads(client.sent)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    prompts = [json.loads(stream.body)["prompt"] for stream in gateway.engine.streams]
    assert sorted(prompts) == ["p", "p", "q", "q"]


async def test_comments_keep_a_slow_start_alive() -> None:
    """S18: headers and comments while the engine is silent; the SDK ignores them."""
    first = asyncio.Event()
    gateway = MemoryGateway([first, *events.answer(["a"])], keepalive_ms=1)
    client = gateway.a_client(stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: client.sent.count(b": keep-alive\n\n") >= 2)
    first.set()
    await task
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert text_of(client) == "a"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_worker_is_named_only_where_the_operator_says_so(stream: bool) -> None:
    """`x-weir-worker` is off by default for tenants."""
    for shown in (True, False):
        gateway = MemoryGateway(events.answer(["a"]), show_worker_header=shown)
        client = await gateway.post(stream=stream)
        assert client.headers.get(b"x-weir-worker") == (b"w0" if shown else None)


async def test_an_engine_that_only_speaks_openais_http_serves_too() -> None:
    """No SGLang field is sent to it; its usage comes in OpenAI's form."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    gateway = MemoryGateway([events.content("a"), events.finish(),
                             json.dumps({"choices": [], "usage": usage}).encode()])  # fmt: skip
    worker = gateway.directory.all_workers[0]
    gateway.directory.all_workers = [
        type(worker)(id="w0", model="m", url="http://w0", kind=EngineKind.OPENAI)
    ]
    await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)
    sent = json.loads(gateway.engine.streams[0].body)
    assert not {"rid", "cache_salt"} & set(sent)


async def test_a_cancelled_caller_changes_nothing() -> None:
    """The server gives up on its handler: the request still ends, recorded and settled."""
    gate = asyncio.Event()
    gateway = MemoryGateway([events.content("a"), gate, events.finish(), events.usage(5, 1)])
    client: RecordingConnection = gateway.a_client(stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: client.sent)
    task.cancel()
    await asyncio.wait([task])
    gate.set()
    await until(lambda: len(gateway.live) == 0)
    await asyncio.sleep(0)
    gateway.assert_one_of_each(Outcome.COMPLETED)

import asyncio
import json

import engine_events as events
import pytest
from memory_gateway import data_of, error_of, until
from scripted_engine import RecordingConnection
from tenant_examples import a_worker

from gateway.errors import (
    InvalidRequest,
    Overloaded,
    QuotaExceeded,
    WeirError,
    WorkerFailed,
)
from gateway.serving.answer import StreamAnswer, WholeAnswer, answer_error
from gateway.serving.choice import Choice
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request
from gateway.wire.upstream import read_event

USAGE: dict[str, object] = {"total_tokens": 3}
HEADERS = [(b"x-request-id", b"rid")]


def a_request(
    fields: dict[str, object] | None = None, *, endpoint: Endpoint = "chat"
) -> CompletionRequest:
    prompt = {"messages": [{"role": "user", "content": "x"}]} if endpoint == "chat" else {}
    body = {"model": "m", "stream": True, **prompt, **(fields or {})}
    return read_request(endpoint, json.dumps(body).encode(), {})


def a_choice(index: int = 0) -> Choice:
    choice = Choice(index=index, prompt=0, body=lambda worker, attempt: ("", b""))
    choice.worker = a_worker()
    return choice


async def take(answer: StreamAnswer | WholeAnswer, choice: Choice, *data: bytes) -> None:
    for each in data:
        event = read_event(each)
        choice.note(event, 0)
        await answer.take(choice, each, event)


def a_stream(
    client: RecordingConnection,
    fields: dict[str, object] | None = None,
    *,
    keepalive_s: float = 15.0,
) -> StreamAnswer:
    return StreamAnswer(client, a_request(fields), "rid", 7, HEADERS, keepalive_s=keepalive_s)


async def test_headers_wait_for_the_first_event() -> None:
    """DESIGN 6: until then a failure is a status."""
    client = RecordingConnection()
    answer = a_stream(client)
    assert client.headers == {}
    await take(answer, a_choice(), events.role())
    assert (client.status, client.headers[b"x-request-id"]) == (200, b"rid")
    assert client.headers[b"content-type"].startswith(b"text/event-stream")
    await answer.complete(USAGE)
    assert data_of(client)[-1] == "[DONE]"


@pytest.mark.parametrize(("endpoint", "prefix"), [("chat", "chatcmpl-"), ("completions", "cmpl-")])
async def test_every_chunk_bears_our_id(endpoint: Endpoint, prefix: str) -> None:
    """One id throughout, whatever the engines'; the model as it was asked for."""
    client = RecordingConnection()
    prompt: dict[str, object] = {} if endpoint == "chat" else {"prompt": "x"}
    request = a_request({"stream_options": {"include_usage": True}, **prompt}, endpoint=endpoint)
    answer = StreamAnswer(client, request, "rid", 7, HEADERS, keepalive_s=9)
    await take(answer, a_choice(), events.content("a"))
    await answer.complete(USAGE)
    *chunks, done = data_of(client)
    assert done == "[DONE]"
    assert {(c["id"], c["model"], c["created"]) for c in chunks} == {(prefix + "rid", "m", 7)}
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], USAGE)


async def test_the_engines_usage_chunk_is_held_back() -> None:
    """S02, S25: ours comes once, at the end, and only where it was asked for."""
    client = RecordingConnection()
    answer = a_stream(client)
    await take(answer, a_choice(), events.content("a"), events.finish(), events.usage(5, 1))
    await answer.complete(USAGE)
    assert b"usage" not in client.sent


async def test_continuous_usage_is_the_clients_to_ask() -> None:
    """With one choice the engine's progress is the answer's; with more it would be one stream's."""
    options = {"stream_options": {"continuous_usage_stats": True}}
    for choices, shown in ((1, True), (2, False)):
        client = RecordingConnection()
        answer = a_stream(client, {"n": choices, **options})
        await take(answer, a_choice(), events.content("a", usage=events.counts(5, 1)))
        await answer.complete(USAGE)
        assert (b"completion_tokens" in client.sent) is shown


async def test_the_chunk_of_an_abort_is_not_shown() -> None:
    """INV-14: it is no finish reason of OpenAI's."""
    client = RecordingConnection()
    answer = a_stream(client)
    await take(answer, a_choice(), events.content("a"), events.finish("abort"))
    await answer.fail(WorkerFailed("gone"))
    assert b"abort" not in client.sent
    assert error_of(client)["code"] == "worker_failed"
    assert b"[DONE]" not in client.sent


async def test_comments_come_before_the_first_event_only() -> None:
    """S18: once begun, a failure is an event; after the first chunk no comment is in between."""
    client = RecordingConnection()
    answer = a_stream(client, keepalive_s=0.005)
    await until(lambda: client.sent.count(b": keep-alive") >= 2)
    assert client.status == 200
    await take(answer, a_choice(), events.content("a"))
    begun = client.sent.count(b": keep-alive")
    await asyncio.sleep(0.02)
    assert client.sent.count(b": keep-alive") == begun
    await answer.fail(WorkerFailed("gone"))
    assert error_of(client)["code"] == "worker_failed"


async def test_closing_ends_the_comments() -> None:
    """C11: whether they had begun or not, no task and no timer is left."""
    for wait_s in (0.0, 0.01):
        client = RecordingConnection()
        answer = a_stream(client, keepalive_s=0.005)
        await asyncio.sleep(wait_s)
        await answer.close()
        await answer.close()
        seen = client.sent
        await asyncio.sleep(0.01)
        assert client.sent == seen
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_whole_answer_is_sent_at_the_end() -> None:
    """Nothing before; the length is right; choices in order."""
    client = RecordingConnection()
    answer = WholeAnswer(client, a_request({"n": 2, "stream": False}), "rid", 7, HEADERS)
    await take(answer, a_choice(1), events.content("b"), events.finish())
    await take(answer, a_choice(0), events.content("a"), events.finish("length"))
    assert client.status is None
    await answer.complete(USAGE)
    body = json.loads(client.sent)
    assert (body["id"], body["usage"]) == ("chatcmpl-rid", USAGE)
    assert [c["message"]["content"] for c in body["choices"]] == ["a", "b"]
    assert client.headers[b"content-length"] == str(len(client.sent)).encode()


@pytest.mark.parametrize("whole", [True, False])
async def test_a_failure_before_anything_is_a_status(whole: bool) -> None:
    """S27: never a 200 with an error in it."""
    client = RecordingConnection()
    answer: StreamAnswer | WholeAnswer = a_stream(client)
    if whole:
        await answer.close()
        answer = WholeAnswer(client, a_request({"stream": False}), "rid", 7, HEADERS)
    await answer.fail(Overloaded("full", code="no_capacity"))
    assert (client.status, error_of(client)["code"]) == (503, "no_capacity")
    assert client.headers[b"retry-after"] == b"1"
    assert client.headers[b"x-request-id"] == b"rid"


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (QuotaExceeded("spent"), b"false"),
        (InvalidRequest("bad"), None),
    ],
)
async def test_an_error_says_whether_to_try_again(error: WeirError, retried: bytes | None) -> None:
    """S19: a monthly budget is not back in a minute; SDKs heed the header."""
    client = RecordingConnection()
    error.headers = ((b"x-ratelimit-limit-tokens", b"5"),)
    await answer_error(client, error, HEADERS)
    assert client.headers.get(b"x-should-retry") == retried
    assert client.headers[b"x-ratelimit-limit-tokens"] == b"5"
    assert client.finished

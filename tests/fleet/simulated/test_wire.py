"""The simulated worker's answers against SGLang's captured ones, field by field."""

import asyncio
import json

import pytest
import sglang_captures as captured
from worker_process import Json, WorkerClient, chat_body


async def test_whole_answer(worker: WorkerClient) -> None:
    """A whole chat completion has SGLang's fields in SGLang's order."""
    answer = await worker.chat("A question that nobody asked before", rid="whole-1")
    assert captured.shape(answer) == captured.shape(json.loads(captured.CHAT)), answer
    assert answer["id"] == "whole-1"
    assert answer["model"] == "m"
    assert answer["usage"]["completion_tokens"] == 8


async def test_stream(worker: WorkerClient) -> None:
    """A stream is role, content, empty delta with the finish reason, usage, [DONE]."""
    streamed = await worker.chat_stream(rid="stream-1")
    events = streamed.events
    wanted = [captured.ROLE_CHUNK, *[captured.CONTENT_CHUNK] * (len(events) - 3)]
    wanted += [captured.FINISH_CHUNK, captured.USAGE_CHUNK]
    assert [captured.shape(event) for event in events] == [
        captured.shape(json.loads(event)) for event in wanted
    ]
    assert streamed.done
    assert streamed.complete
    assert {event["id"] for event in events} == {"stream-1"}
    assert streamed.finish_reason == "length"


async def test_stream_without_usage(worker: WorkerClient) -> None:
    """Without stream_options no event has usage."""
    streamed = await worker.chat_stream(stream_options=None)
    assert streamed.done
    assert streamed.finish_reason == "length"
    assert not any("usage" in event for event in streamed.events)


async def test_continuous_usage(worker: WorkerClient) -> None:
    """Each content event counts what is out so far; role and finish events carry none."""
    streamed = await worker.chat_stream(stream_options={"continuous_usage_stats": True})
    content = streamed.events[1:-1]
    shapes = {json.dumps(captured.shape(event)) for event in content}
    assert shapes == {json.dumps(captured.shape(json.loads(captured.CONTENT_CHUNK_CONTINUOUS)))}
    counts = [event["usage"]["completion_tokens"] for event in content]
    assert counts == sorted(set(counts))
    assert counts[-1] == 8
    assert not any("usage" in event for event in (streamed.events[0], streamed.events[-1]))


async def test_text_stream(worker: WorkerClient) -> None:
    """A text completion streams text with the finish on its last text, 16 tokens by default."""
    body: Json = {"prompt": "def f(x):"}
    body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    streamed = await worker.stream("/v1/completions", body)
    *content, usage = streamed.events
    first = json.loads(captured.TEXT_CHUNK_CONTINUOUS)
    assert captured.shape(content[0]) == captured.shape(first)
    assert captured.shape(usage) == captured.shape(json.loads(captured.TEXT_USAGE_CHUNK))
    assert content[-1]["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == 16


async def test_choices(worker: WorkerClient) -> None:
    """n choices run as sequences with ids of their own; the prompt is counted once."""
    since = await worker.ledger_end()
    streamed = await worker.chat_stream(n=2, rid="not-used", max_tokens=3)
    ids = {event["id"] for event in streamed.events}
    assert len(ids) == 2
    assert "not-used" not in ids
    usage = streamed.usage
    assert usage is not None
    assert usage["completion_tokens"] == 6
    entries = await worker.ledger(since)
    assert {entry["rid"] for entry in entries} == ids
    assert {entry["prompt_tokens"] for entry in entries} == {usage["prompt_tokens"]}


async def test_abort(worker: WorkerClient) -> None:
    """An aborted stream ends with reason abort, its true usage and [DONE]."""
    running = asyncio.create_task(worker.chat_stream(max_tokens=2000, rid="abort-1-"))
    await worker.eventually_load(num_running_reqs=1)
    await worker.abort(rid="abort-1-")
    streamed = await running
    assert streamed.finish_reason == "abort"
    assert streamed.done
    usage, entry = streamed.usage, await worker.ledger_of("abort-1-")
    assert usage is not None
    assert entry["finish_reason"] == "abort"
    assert entry["completion_tokens"] == usage["completion_tokens"]
    # One event a token, beside role, finish and usage: the worker counts what it sent.
    assert usage["completion_tokens"] == len(streamed.events) - 3


async def test_abort_of_a_whole_answer(worker: WorkerClient) -> None:
    """Without a stream an abort is HTTP 200 with the partial text."""
    running = asyncio.create_task(worker.chat(max_tokens=2000, rid="abort-2-"))
    await worker.eventually_load(num_running_reqs=1)
    await worker.abort(rid="abort-2-")
    answer = await running
    assert answer["choices"][0]["finish_reason"] == "abort"
    content = answer["choices"][0]["message"]["content"]
    entry = await worker.ledger_of("abort-2-")
    assert len(content.split()) == answer["usage"]["completion_tokens"]
    assert entry["completion_tokens"] == answer["usage"]["completion_tokens"]


async def test_abort_by_prefix(worker: WorkerClient) -> None:
    """An abort takes along every rid that begins with it, and an empty one none."""
    rids = ["p1", "p10", "p12", "x1"]
    running = [
        asyncio.create_task(worker.chat_stream(max_tokens=60, rid=rid, ignore_eos=True))
        for rid in rids
    ]
    await worker.eventually_load(num_running_reqs=4)
    await worker.abort(rid="")
    await worker.abort(rid="p1")
    reasons = [(await each).finish_reason for each in running]
    assert reasons == ["abort", "abort", "abort", "length"]


async def test_live_duplicate(worker: WorkerClient) -> None:
    """A rid that is alive is refused, and free again afterwards."""
    running = asyncio.create_task(worker.chat_stream(max_tokens=2000, rid="same"))
    await worker.eventually_load(num_running_reqs=1)
    status, answer = await worker.post("/v1/chat/completions", chat_body("x", rid="same"))
    assert status == 400
    assert json.loads(answer)["message"] == "Duplicate request ID detected: same"
    await worker.abort(rid="same")
    await running
    assert (await worker.chat(rid="same"))["id"] == "same"


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"messages": []}, captured.NO_MESSAGES),
        ({"temperature": -1}, captured.BAD_TEMPERATURE),
        ({"max_tokens": 5000}, captured.MAX_TOKENS_OVER_CONTEXT),
        (
            {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2047},
            captured.PROMPT_AND_MAX_OVER_CONTEXT,
        ),
    ],
)
async def test_refusals(worker: WorkerClient, fields: Json, wanted: str) -> None:
    """Refusals are SGLang's to the byte, streaming or not."""
    for stream in (False, True):
        body = chat_body("hi", stream=stream, **fields) | fields
        assert await worker.post("/v1/chat/completions", body) == (400, wanted)


async def test_prompt_over_context(worker: WorkerClient) -> None:
    """A prompt beyond the context is refused with both counts."""
    status, answer = await worker.post("/v1/chat/completions", chat_body("word " * 12_000))
    assert status == 400
    assert captured.shape(json.loads(answer)) == captured.shape(
        json.loads(captured.PROMPT_OVER_CONTEXT)
    )
    assert json.loads(answer)["message"].endswith("model's context length (2048 tokens).")


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"tiny","messages":[',
        b"",
        b"\xff\xfe",
        b"[" * 20_000 + b"]" * 20_000,
        b'{"messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"messages":[{"role":"user","content":"secret"}],"max_tokens":"secret"}',
        b'{"messages":"secret"}',
        b'{"messages":[{"role":"user","content":{"secret":1}}]}',
        b'{"max_tokens":3}',
        b'{"messages":[{"role":"user","content":"hi"}],"n":0}',
        b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":-1}',
        b'{"messages":[{"role":"user","content":"hi"}],"top_p":0}',
        b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"min_tokens":3}',
        b'{"messages":[{"role":"user","content":"hi"}],"input_ids":[1,999999]}',
        b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"secret"}]}]}',
    ],
)
async def test_bad_bodies(worker: WorkerClient, body: bytes) -> None:
    """Whatever is wrong with a body is a 400 in SGLang's shape that repeats none of it."""
    status, answer = await worker.post("/v1/chat/completions", body)
    assert status == 400
    assert list(json.loads(answer)) == ["object", "message", "type", "param", "code"]
    assert "secret" not in answer
    assert "/" not in json.loads(answer)["message"]


async def test_unknown_things(worker: WorkerClient) -> None:
    """Unknown paths, methods, fields and models are answered as SGLang does."""
    async with worker.session.get("/v1/nope") as response:
        assert (response.status, await response.text()) == (404, '{"detail":"Not Found"}')
    async with worker.session.get("/v1/chat/completions") as response:
        assert (response.status, response.headers["allow"]) == (405, "POST")
        assert await response.text() == '{"detail":"Method Not Allowed"}'
    assert (await worker.chat(model="nope", frobnicate=1))["model"] == "nope"
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0}
    status, answer = await worker.post("/v1/chat/completions", body)
    parsed = json.loads(answer)
    assert (status, parsed["model"], parsed["usage"]["completion_tokens"]) == (200, "default", 0)


async def test_tokenise(worker: WorkerClient) -> None:
    """/v1/tokenize counts what a chat is then charged."""
    messages = [{"role": "user", "content": "Name three rivers."}]
    status, answer = await worker.post("/v1/tokenize", {"model": "tiny", "messages": messages})
    counted = json.loads(answer)
    assert (status, counted["max_model_len"]) == (200, 2048)
    assert len(counted["tokens"]) == counted["count"]
    assert (await worker.chat())["usage"]["prompt_tokens"] == counted["count"]


async def test_descriptions(worker: WorkerClient) -> None:
    """Models, loads, readiness and information say what a gateway reads, and that it is
    simulated."""
    models = await worker.get("/v1/models")
    assert captured.shape(models) == captured.shape(json.loads(captured.MODEL_LIST))
    assert set(await worker.load()) >= captured.RANK_LOAD_FIELDS
    for path in ("/ready", "/health"):
        async with worker.session.get(path) as response:
            assert (response.status, await response.text()) == (200, "")
    for path in ("/server_info", "/get_server_info"):
        info = await worker.get(path)
        assert (info["status"], info["max_total_num_tokens"]) == ("ready", 640_000)
        assert info["weir_engine"] == "simulated"
    assert (await worker.get("/model_info"))["weir_engine"] == "simulated"

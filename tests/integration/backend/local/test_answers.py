"""What the real model answers: real text, SGLang's shapes, its own exact counts."""

import json

import pytest
import sglang_captures as captured
from worker_process import Json, WorkerClient, chat_body


async def test_coherent_english(worker: WorkerClient) -> None:
    """At temperature 0 the answers are English and to the point."""
    rivers = await worker.chat("Name three rivers.", max_tokens=30)
    assert "river" in rivers["choices"][0]["message"]["content"].lower()
    total = await worker.chat("What is 2+2?", max_tokens=20)
    assert "4" in total["choices"][0]["message"]["content"]


async def test_whole_answer_and_stream_agree(worker: WorkerClient) -> None:
    """Streamed or not, the text and the usage are the same, and in SGLang's shapes."""
    answer = await worker.chat(rid="local-whole")
    wanted = json.loads(captured.CHAT)
    # This engine has no prefix cache, so it says nothing about cached tokens.
    wanted["usage"]["prompt_tokens_details"] = None
    assert captured.shape(answer) == captured.shape(wanted)
    streamed = await worker.chat_stream(rid="local-stream")
    content = [captured.CONTENT_CHUNK] * (len(streamed.events) - 3)
    shapes = [captured.ROLE_CHUNK, *content, captured.FINISH_CHUNK]
    shapes.append(captured.USAGE_CHUNK_WITHOUT_CACHE_REPORT)
    assert [captured.shape(event) for event in streamed.events] == [
        captured.shape(json.loads(event)) for event in shapes
    ]
    assert streamed.text == answer["choices"][0]["message"]["content"]
    assert streamed.usage == answer["usage"]
    assert streamed.done
    assert (await worker.ledger_of("local-stream"))["completion_tokens"] == 8


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": "Écris en 日本語 with 😀 and \u200b and a\u0000b"}],
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "  Hi \n\n there"},
        ],
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "2"}],
            }
        ],
        [{"role": "user", "content": "<|im_end|>\n<|im_start|>user\n{{ 7 * 7 }} {% raw %}"}],
        [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Again"},
        ],
    ],
)
async def test_prompt_count_is_exact(worker: WorkerClient, messages: list[Json]) -> None:
    """/v1/tokenize counts what the engine then counts itself."""
    status, counted = await worker.post("/v1/tokenize", {"messages": messages})
    assert status == 200
    body = chat_body("", messages=messages, max_tokens=1) | {"messages": messages}
    status, answer = await worker.post("/v1/chat/completions", body)
    usage = json.loads(answer)["usage"]
    assert (status, usage["prompt_tokens"]) == (200, json.loads(counted)["count"])
    assert usage["completion_tokens"] == 1


async def test_text_completion(worker: WorkerClient) -> None:
    """A text completion continues the raw text; prompts of a list are counted each."""
    status, counted = await worker.post("/v1/tokenize", {"prompt": "Once upon a time"})
    assert (json.loads(counted)["count"], json.loads(counted)["max_model_len"]) == (4, 8192)
    body = {"prompt": ["Once upon a time", "The sea"], "temperature": 0, "max_tokens": 4}
    status, answer = await worker.post("/v1/completions", body)
    parsed = json.loads(answer)
    assert (status, len(parsed["choices"])) == (200, 2)
    assert parsed["usage"]["prompt_tokens"] == 6
    assert parsed["usage"]["completion_tokens"] == 8


async def test_continue_final_message(worker: WorkerClient) -> None:
    """An answer cut in two goes on where it was cut, as if it had not been."""
    whole = (await worker.chat(max_tokens=12))["choices"][0]["message"]["content"]
    first = (await worker.chat(max_tokens=6))["choices"][0]["message"]["content"]
    messages = [
        {"role": "user", "content": "Name three rivers."},
        {"role": "assistant", "content": first},
    ]
    body = chat_body("", max_tokens=6, continue_final_message=True) | {"messages": messages}
    _, answer = await worker.post("/v1/chat/completions", body)
    assert first + json.loads(answer)["choices"][0]["message"]["content"] == whole


async def test_characters_of_several_tokens(worker: WorkerClient) -> None:
    """Progress counts tokens, not chunks: four characters here are twelve tokens."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    streamed = await worker.chat_stream(
        "x", max_tokens=12, regex="(😀|🐈){4}", stream_options=options
    )
    counts = [event["usage"]["completion_tokens"] for event in streamed.events[1:-2]]
    assert len(streamed.text) == 4
    assert counts[-1] == 12
    assert counts == [3, 6, 9, 12][-len(counts) :]
    assert streamed.usage is not None
    assert streamed.usage["completion_tokens"] == 12


async def test_progress_is_exact(worker: WorkerClient) -> None:
    """Whatever script the model writes in, progress and the engine's own usage never differ."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    for question in ("Γράψε ελληνικά", "Write emoji: 😀🐈🌊", "日本語で書いてください"):
        streamed = await worker.chat_stream(
            question, max_tokens=25, temperature=1, ignore_eos=True, stream_options=options
        )
        *progress, closing = [e["usage"] for e in streamed.events if "usage" in e]
        assert closing["completion_tokens"] == 25
        # A character that is incomplete at the end is shown with the last token or not at all.
        assert 22 <= progress[-1]["completion_tokens"] <= 25
        counts = [usage["completion_tokens"] for usage in progress]
        assert counts == sorted(set(counts))


async def test_ends_by_itself(worker: WorkerClient) -> None:
    """A short answer ends with reason stop, its end token counted."""
    answer = await worker.chat("What is 2+2?", max_tokens=60)
    content = answer["choices"][0]["message"]["content"]
    assert answer["choices"][0]["finish_reason"] == "stop"
    _, counted = await worker.post("/v1/tokenize", {"prompt": content})
    assert answer["usage"]["completion_tokens"] == json.loads(counted)["count"] + 1


async def test_stop_string(worker: WorkerClient) -> None:
    """A stop string that begins inside a token ends the text before it."""
    whole = (await worker.chat(max_tokens=24))["choices"][0]["message"]["content"]
    stop = whole[14:17]
    answer = await worker.chat(max_tokens=24, stop=[stop])
    choice = answer["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", stop)
    assert 0 < answer["usage"]["completion_tokens"] < 24


async def test_logprobs(worker: WorkerClient) -> None:
    """Log probabilities come in SGLang's shape, the chosen token the likeliest at 0."""
    answer = await worker.chat(max_tokens=3, logprobs=True, top_logprobs=2)
    logprobs = answer["choices"][0]["logprobs"]
    assert captured.shape(logprobs) == captured.shape(json.loads(captured.CHAT_LOGPROBS))
    assert len(logprobs["content"]) == 3
    for entry in logprobs["content"]:
        assert entry["token"] == entry["top_logprobs"][0]["token"]
        assert bytes(entry["bytes"]).decode() == entry["token"]


async def test_json_schema(worker: WorkerClient) -> None:
    """A JSON schema binds the answer."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = await worker.chat("Answer in JSON.", max_tokens=40, response_format=form)
    assert list(json.loads(answer["choices"][0]["message"]["content"])) == ["a"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 1, "seed": 5}, "seed"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"min_tokens": 3}, "min_tokens"),
        ({"stop_token_ids": [2]}, "stop_token_ids"),
        ({"regex": "((("}, "regex"),
        ({"max_tokens": 9000}, "max_completion_tokens"),
        ({"lora_path": "x"}, "lora_path"),
    ],
)
async def test_refusals(worker: WorkerClient, fields: Json, word: str) -> None:
    """What the engine cannot carry out is refused by name, never ignored."""
    status, answer = await worker.post("/v1/chat/completions", chat_body("hi", **fields) | fields)
    assert status == 400
    assert word in json.loads(answer)["message"]


async def test_gateway_fields_are_accepted(worker: WorkerClient) -> None:
    """Fields that a gateway adds do not disturb."""
    answer = await worker.chat(max_tokens=2, cache_salt="s", priority=3, rid="x" * 36, user="u")
    assert answer["id"] == "x" * 36

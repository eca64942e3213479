"""Chat completions, whole and streamed (`captures/01…`, `02…`, `09d`, `09k`, `09l`)."""

from typing import Any
from uuid import uuid4

from conformance.engine import CHAT, Engine, Json, chat_body
from conformance.shapes import (
    CLOSING_USAGE,
    CONTENT,
    CONTENT_WITH_USAGE,
    FINISH,
    ROLE,
    USAGE,
    assert_shape,
    chat_chunk,
    whole_chat,
)

WITH_USAGE = {"include_usage": True}
RUNNING_USAGE = {"continuous_usage_stats": True}


def streamed(engine: Engine, text: str = "", **fields: Any) -> list[Json]:
    """The events of a chat stream."""
    return engine.chat(text, stream=True, **fields).events


def content_of(events: list[Json]) -> str:
    """All content of choice 0."""
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == 0]
    return "".join(choice["delta"].get("content", "") for choice in choices)


def check_whole(engine: Engine) -> None:
    """01a: names, their order and kinds; the parts add up; the finish reason is the length."""
    answer = engine.chat()
    assert answer.headers["content-type"] == "application/json"
    assert_shape(answer.json, whole_chat())
    usage = answer.json["usage"]
    assert usage["completion_tokens"] == 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + 4
    choice = answer.json["choices"][0]
    assert choice["message"]["role"] == "assistant"
    assert (choice["finish_reason"], choice["matched_stop"]) == ("length", None)
    spans = answer.json["metadata"]["weight_versions"]
    assert spans == [{"version": "default", "start": 0, "end": 4}]


def check_headers(engine: Engine) -> None:
    """01a: no request id, no Retry-After; the body's length is said."""
    headers = engine.chat().headers
    assert headers["content-length"]
    assert not {"x-request-id", "retry-after"} & headers.keys()


def check_stream_order(engine: Engine) -> None:
    """01d: role, content, an empty delta with the finish reason, usage without choices, DONE."""
    events = streamed(engine, stream_options=WITH_USAGE)
    role, *content, finish, usage = events
    assert_shape(role, ROLE)
    assert role["choices"][0]["delta"] == ROLE["choices"][0]["delta"]
    assert content
    for event in content:
        assert_shape(event, CONTENT)
        assert event["choices"][0]["delta"]["content"]
    assert_shape(finish, FINISH)
    assert finish["choices"][0]["finish_reason"] == "length"
    assert_shape(usage, CLOSING_USAGE)
    assert usage["usage"]["completion_tokens"] == 4
    assert len({(event["id"], event["created"], event["model"]) for event in events}) == 1


def check_stream_without_usage(engine: Engine) -> None:
    """01c: without stream options no event carries usage, and none is without a choice."""
    events = streamed(engine)
    assert all("usage" not in event and event["choices"] for event in events)
    assert events[-1]["choices"][0]["finish_reason"] == "length"


def check_stream_says_what_a_whole_says(engine: Engine) -> None:
    """01a, 01d: at temperature 0 text, counts and finish are the same both ways."""
    question = f"Tell me of a sea ({uuid4().hex})."
    whole = engine.chat(question, max_tokens=6).json
    events = streamed(engine, question, max_tokens=6, stream_options=WITH_USAGE)
    assert content_of(events) == whole["choices"][0]["message"]["content"]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert events[-1]["usage"][name] == whole["usage"][name]


def check_running_usage(engine: Engine) -> None:
    """02a: each content event says what is out so far; role and finish say nothing."""
    events = streamed(engine, max_tokens=6, stream_options={**WITH_USAGE, **RUNNING_USAGE})
    role, *content, finish, usage = events
    assert_shape(role, ROLE)
    assert_shape(finish, FINISH)
    assert_shape(usage, CLOSING_USAGE)
    for event in content:
        assert_shape(event, CONTENT_WITH_USAGE)
        said = event["usage"]
        assert said["total_tokens"] == said["prompt_tokens"] + said["completion_tokens"]
    counts = [event["usage"]["completion_tokens"] for event in content]
    assert counts == sorted(set(counts))
    assert counts[0] >= 1
    assert counts[-1] == usage["usage"]["completion_tokens"] == 6


def check_running_usage_alone(engine: Engine) -> None:
    """02b: it needs no `include_usage`, and brings no closing usage."""
    role, *content, finish = streamed(engine, stream_options=RUNNING_USAGE)
    assert_shape(role, ROLE)
    assert_shape(finish, FINISH)
    for event in content:
        assert_shape(event, CONTENT_WITH_USAGE)


def check_rid_is_the_id(engine: Engine) -> None:
    """01g: whole and streamed; without one the id is 32 hex digits."""
    rid = f"gw-{uuid4().hex}"
    assert engine.chat(rid=rid).json["id"] == rid
    assert {event["id"] for event in streamed(engine, rid=f"{rid}+")} == {f"{rid}+"}
    made: str = engine.chat().json["id"]
    assert len(made) == 32
    assert int(made, 16) >= 0


def check_choices(engine: Engine) -> None:
    """01f: each of n choices has an id of its own; the finishes and the usage come last, under
    one of them; the prompt is counted once."""
    rid = f"not-used-{uuid4().hex}"
    body = chat_body(n=2, max_tokens=3, rid=rid, temperature=1)
    alone = engine.post(CHAT, {**body, "n": 1}).json["usage"]["prompt_tokens"]
    sent = {**body, "stream": True, "stream_options": WITH_USAGE}
    *events, first, second, usage = engine.post(CHAT, sent).events
    ids = {event["choices"][0]["index"]: event["id"] for event in events}
    assert ids.keys() == {0, 1}
    assert len({*ids.values()} - {rid}) == 2
    assert all(event["id"] == ids[event["choices"][0]["index"]] for event in events)
    for finish in (first, second):
        assert_shape(finish, FINISH)
    assert {finish["choices"][0]["index"] for finish in (first, second)} == {0, 1}
    assert first["id"] == second["id"] == usage["id"] == events[-1]["id"]
    assert_shape(usage["usage"], USAGE)
    assert usage["usage"]["prompt_tokens"] == alone
    assert usage["usage"]["completion_tokens"] == 6


def check_whole_choices(engine: Engine) -> None:
    """01f, whole: usage sums the choices, the metadata are of one."""
    answer = engine.chat(n=2, max_tokens=3, rid=f"not-used-{uuid4().hex}", temperature=1).json
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert answer["usage"]["completion_tokens"] == 6
    assert answer["metadata"]["weight_versions"] == [{"version": "default", "start": 0, "end": 3}]
    assert not answer["id"].startswith("not-used")


def check_stop_string(engine: Engine) -> None:
    """The text ends before it, it is named, and what completed it is counted."""
    question = f"Count the rivers of Europe ({uuid4().hex})."
    whole = engine.chat(question, max_tokens=6).json["choices"][0]["message"]["content"]
    stop = whole[len(whole) // 2 :][:3]
    answer = engine.chat(question, max_tokens=6, stop=[stop, "never seen"]).json
    (choice,) = answer["choices"]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", stop)
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert 1 <= answer["usage"]["completion_tokens"] <= 6
    events = streamed(engine, question, max_tokens=6, stop=stop)
    assert_shape(events[-1], chat_chunk({}, finish="stop") | {"choices": events[-1]["choices"]})
    (last,) = events[-1]["choices"]
    assert (last["finish_reason"], last["matched_stop"]) == ("stop", stop)
    assert content_of(events) == choice["message"]["content"]


def check_unknown_model_and_field(engine: Engine) -> None:
    """09d, 09k: both are taken; the model's name is echoed."""
    answer = engine.chat(model="nope", frobnicate=1)
    assert answer.status == 200
    assert answer.json["model"] == "nope"
    assert_shape(answer.json, whole_chat())


def check_nothing_asked(engine: Engine) -> None:
    """09l: max_tokens 0 is 200 with an empty text; a model that is absent is `default`."""
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0}
    answer = engine.post(CHAT, body)
    assert answer.status == 200
    assert_shape(answer.json, whole_chat())
    assert answer.json["model"] == "default"
    assert answer.json["choices"][0]["message"]["content"] == ""
    assert answer.json["choices"][0]["finish_reason"] == "length"
    assert answer.json["usage"]["completion_tokens"] == 0
    assert answer.json["metadata"]["weight_versions"][0]["end"] == 0

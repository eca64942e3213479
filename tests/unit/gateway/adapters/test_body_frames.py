"""What a gateway and its reading process tell each other, without a process."""

import io
import json
from typing import Any

import msgspec
import pytest

from gateway.adapters.body_frames import LENGTH, Question, answer, understood
from gateway.adapters.body_process import serve
from gateway.errors import InvalidRequest, UnsupportedParameter, WeirError
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request

LONG = "word " * 2_000
TOOL = {"type": "function", "function": {"name": "f" * 60, "description": LONG}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}
PARSED = {"role": "assistant", "content": LONG, "parsed": {"a": 1}}


def message(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def same(one: CompletionRequest, other: CompletionRequest) -> bool:
    """Whether two requests are equal; their JSON byte for byte."""

    def plain(request: CompletionRequest) -> dict[str, Any]:
        fields = {name: getattr(request, name) for name in request.__struct_fields__}
        fields["prompts"] = [bytes(raw) for raw in request.prompts]
        fields["forward"] = {name: bytes(raw) for name, raw in request.forward.items()}
        return fields

    return plain(one) == plain(other)


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        ("chat", {"messages": [message("hi")]}),
        ("chat", {"messages": [message(LONG)], "tools": [TOOL], "stream": True, "n": 3}),
        ("chat", {"messages": [message([{"type": "text", "text": LONG}, IMAGE])]}),
        ("chat", {"messages": [message(LONG), PARSED], "max_tokens": 5}),
        ("completions", {"prompt": LONG, "stop": ["a", "b"], "seed": 7}),
        ("completions", {"prompt": ["é" * 5_000, "b", LONG], "temperature": 0.5}),
    ],
)
def test_what_is_told_is_what_was_read(endpoint: Endpoint, fields: dict[str, object]) -> None:
    """Every field and every byte, whether it is told or taken from the body."""
    for ascii_only in (True, False):
        body = json.dumps({"model": "m", **fields}, ensure_ascii=ascii_only).encode()
        headers = {b"x-weir-class": b"batch", b"x-weir-data-policy": b"self_hosted_only"}
        reply = answer(endpoint, headers, body)
        assert same(understood(reply, body), read_request(endpoint, body, headers))


def test_a_long_text_is_not_sent_back() -> None:
    """It is in the body already."""
    body = json.dumps({"model": "m", "messages": [message("x" * 10**6)]}).encode()
    assert len(answer("chat", {}, body)) < 1_000


@pytest.mark.parametrize(
    ("fields", "kind", "param"),
    [
        ({"max_tokens": 0}, InvalidRequest, "max_tokens"),
        ({"rid": "x"}, UnsupportedParameter, "rid"),
        ({"messages": [{**message("hi"), "role": "root"}]}, InvalidRequest, "messages"),
    ],
)
def test_an_error_is_the_same_one(
    fields: dict[str, object], kind: type[WeirError], param: str
) -> None:
    """Its kind, its words, its field."""
    body = json.dumps({"model": "m", "messages": [message("hi")], **fields}).encode()
    with pytest.raises(kind) as here:
        read_request("chat", body, {})
    with pytest.raises(kind) as there:
        understood(answer("chat", {}, body), body)
    assert type(here.value) is type(there.value)
    said = (there.value.message, there.value.code, there.value.param)
    assert said == (here.value.message, here.value.code, here.value.param)
    assert str(there.value.param).startswith(param)


def test_a_bug_of_ours_quotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says may be of the body."""

    def broken(*_: object) -> None:
        raise ValueError("a secret prompt")

    monkeypatch.setattr("gateway.adapters.body_frames.read_request", broken)
    reply = answer("chat", {}, b"{}")
    assert b"secret" not in reply
    with pytest.raises(WeirError, match="the gateway failed") as caught:
        understood(reply, b"{}")
    assert (caught.value.status, caught.value.code) == (500, "internal_error")


def test_questions_are_answered_in_turn_until_there_are_no_more() -> None:
    """One after the other, on a stream."""
    bodies = [json.dumps({"model": "m", "prompt": word}).encode() for word in ("a", "b")]
    asked = b""
    for body in bodies:
        question = msgspec.msgpack.encode(Question("completions", {}, len(body)))
        asked += LENGTH.pack(len(question)) + question + body
    replies = io.BytesIO()
    serve(io.BytesIO(asked), replies)
    replies.seek(0)
    for body in bodies:
        (length,) = LENGTH.unpack(replies.read(LENGTH.size))
        read = understood(replies.read(length), body)
        assert [bytes(raw) for raw in read.prompts] == [
            json.dumps(json.loads(body)["prompt"]).encode()
        ]
    assert replies.read() == b""

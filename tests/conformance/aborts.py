"""POST /abort_request, and what the aborted see of it (`captures/04_abort.txt`)."""

from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from conformance.engine import (
    CHAT,
    GENERATE,
    Answer,
    Engine,
    OpenStream,
    chat_body,
    generate_body,
    soon,
)
from conformance.generate import ABORTED, META_ENDED, assert_meta
from conformance.shapes import CLOSING_USAGE, FINISH, assert_error, assert_shape, whole_chat

LONG = 1500
"""More tokens than any check waits for."""
WITH_USAGE = {"include_usage": True}


def begun(engine: Engine, stack: ExitStack, rid: str, **fields: Any) -> OpenStream:
    """A chat stream whose first content has come."""
    body = chat_body(rid=rid, **{"max_tokens": LONG, "stream_options": WITH_USAGE, **fields})
    stream = stack.enter_context(engine.streaming(CHAT, body))
    while not stream.event()["choices"][0]["delta"].get("content"):
        pass
    return stream


def running(engine: Engine, path: str, rid: str, body: dict[str, object]) -> "Future[Answer]":
    """A whole request that the engine runs."""
    before: int = engine.load()["num_running_reqs"]
    answer = engine.later(path, {**body, "rid": rid})
    engine.until_load(num_running_reqs=before + 1)
    return answer


def reason(stream: OpenStream) -> str | None:
    """The finish reason of a stream that is read to its end."""
    reasons = [c["finish_reason"] for event in stream.rest().events for c in event["choices"]]
    (found,) = [each for each in reasons if each]
    return str(found)


def check_a_stream(engine: Engine) -> None:
    """200 without a body; the stream ends with reason abort, its true usage and DONE."""
    rid = f"abort-{uuid4().hex}"
    with ExitStack() as stack:
        stream = begun(engine, stack, rid)
        answer = engine.abort(rid=rid)
        assert (answer.status, answer.raw) == (200, b"")
        assert "content-type" not in answer.headers
        *_, finish, usage = stream.rest().events
    assert_shape(finish, FINISH)
    assert finish["choices"][0]["finish_reason"] == "abort"
    assert_shape(usage, CLOSING_USAGE)
    assert 1 <= usage["usage"]["completion_tokens"] < LONG
    assert usage["usage"]["prompt_tokens"] > 0


def check_a_whole_answer(engine: Engine) -> None:
    """200, reason abort, and what was there until then."""
    rid = f"abort-{uuid4().hex}"
    asked = running(engine, CHAT, rid, chat_body(max_tokens=LONG))
    engine.abort(rid=rid)
    answer = asked.result()
    assert answer.status == 200
    assert_shape(answer.json, whole_chat())
    choice = answer.json["choices"][0]
    assert choice["finish_reason"] == "abort"
    assert choice["message"]["content"]
    assert 1 <= answer.json["usage"]["completion_tokens"] < LONG


def check_generate(engine: Engine) -> None:
    """Whole and as a stream: a reason without a status."""
    whole_rid, stream_rid = f"whole-{uuid4().hex}", f"stream-{uuid4().hex}"
    whole = running(engine, GENERATE, whole_rid, generate_body(tokens=LONG))
    body = generate_body(tokens=LONG, rid=stream_rid)
    with engine.streaming(GENERATE, body) as stream:
        stream.event()
        engine.abort(rid=stream_rid)
        last = stream.rest().events[-1]
    engine.abort(rid=whole_rid)
    for answer in (last, whole.result().json):
        meta = answer["meta_info"]
        assert meta["finish_reason"] == ABORTED
        assert meta["completion_tokens"] == len(answer["output_ids"]) > 0
        assert_meta(meta, {**META_ENDED, "finish_reason": ABORTED})


def check_who_is_not_there(engine: Engine) -> None:
    """An unknown rid is 200 too; it and an empty one harm nobody."""
    with ExitStack() as stack:
        stream = begun(engine, stack, f"stays-{uuid4().hex}", max_tokens=12)
        for body in ({"rid": uuid4().hex}, {"rid": ""}, {}):
            answer = engine.abort(**body)
            assert (answer.status, answer.raw) == (200, b"")
        assert reason(stream) == "length"


def check_by_prefix(engine: Engine) -> None:
    """Whoever's rid begins so goes too, however long it is; others stay."""
    mark = uuid4().hex
    with ExitStack() as stack:
        one, ten, twelve, other = (
            begun(engine, stack, f"{mark}-{name}", max_tokens=maximum)
            for name, maximum in (("p1", LONG), ("p10", LONG), ("p12", LONG), ("x1", 14))
        )
        engine.abort(rid=f"{mark}-p1")
        assert [reason(each) for each in (one, ten, twelve, other)] == [
            *["abort"] * 3,
            "length",
        ]


def check_a_prefix_of_none(engine: Engine) -> None:
    """It is the live requests' rids that are matched, not their own: `abc` is not live, and
    `abc-1` stays."""
    mark = uuid4().hex
    with ExitStack() as stack:
        stream = begun(engine, stack, f"{mark}-1", max_tokens=12)
        engine.abort(rid=mark)
        assert reason(stream) == "length"


def check_all(engine: Engine) -> None:
    """`abort_all` ends whatever runs."""
    with ExitStack() as stack:
        streams = [begun(engine, stack, uuid4().hex) for _ in range(3)]
        assert engine.abort(abort_all=True).status == 200
        assert [reason(each) for each in streams] == ["abort"] * 3


def check_a_live_rid_again(engine: Engine) -> None:
    """400 while it lives, in each form's own words; free again afterwards."""
    rid = f"same-{uuid4().hex}"
    message = f"Duplicate request ID detected: {rid}"
    with ExitStack() as stack:
        begun(engine, stack, rid)
        again = engine.chat(rid=rid)
        assert again.status == 400
        assert_error(again.json, message)
        again = engine.generate(rid=rid)
        assert (again.status, again.json) == (400, {"error": {"message": message}})
        engine.abort(rid=rid)
    soon(lambda: engine.idle, "an idle engine")
    assert engine.chat(rid=rid).json["id"] == rid

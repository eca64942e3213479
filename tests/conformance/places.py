"""One running place and two waiting ones (`captures/05…`, and `--enable-priority-scheduling`
without preemption, as `weir backend sglang` starts SGLang)."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

from conformance.aborts import begun
from conformance.counters import rise, witness
from conformance.departures import waiting_client
from conformance.engine import (
    CHAT,
    GENERATE,
    TEXT,
    Answer,
    Engine,
    Json,
    OpenStream,
    chat_body,
    generate_body,
    soon,
    text_body,
)
from conformance.shapes import (
    NOTHING_USED,
    QUEUE_FULL,
    THROWN_OUT,
    assert_error,
    assert_shape,
    chat_chunk,
    whole_chat,
)

WITH_USAGE = {"include_usage": True}
ORDER_S = 0.05
QUEUED_ABORT = {"type": "abort", "message": "Abort in waiting queue"}


@contextmanager
def occupied(engine: Engine, **fields: Any) -> Iterator[OpenStream]:
    """A stream holds the one running place until the block ends."""
    with ExitStack() as stack:
        yield begun(engine, stack, uuid4().hex, **{"max_tokens": 560, **fields})
    engine.come_to_rest()


def queue(engine: Engine, *asked: tuple[str, Json]) -> list["Future[Answer]"]:
    """Ask for each in turn, and wait until so many wait as are asked for."""
    answers = []
    for path, body in asked:
        answers.append(engine.later(path, body))
        # What an engine says of its queue lags; the order is the requests' own by then.
        time.sleep(ORDER_S)
    engine.until_load(num_waiting_reqs=len(asked))
    return answers


@contextmanager
def full(engine: Engine, **fields: Any) -> Iterator[list["Future[Answer]"]]:
    """Neither a running nor a waiting place is left."""
    with occupied(engine):
        places = range(engine.queued_max or 0)
        yield queue(engine, *[(CHAT, chat_body(max_tokens=2, **fields)) for _ in places])


def event_error(message: str) -> Json:
    """The error in a stream's first event."""
    kind = "SERVICE_UNAVAILABLE"
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": 503}
    return {"error": error}


def check_counters_of_the_queued(engine: Engine) -> None:
    """What is aborted while it waits is counted as an abort and as nothing else, and what
    is refused not at all."""
    with full(engine):
        before = witness(engine)
        assert engine.chat().status == 503
        assert rise(engine, before) == [0, 0, 0, 0, 0]
        engine.abort(abort_all=True)
    soon(lambda: engine.idle, "an idle engine")
    # Of the three only the one that ran; leaving `full` aborts all once more.
    assert rise(engine, before)[3] == 1
    assert rise(engine, before)[4] >= 1


def check_full(engine: Engine) -> None:
    """05a: 503 without a stream; 200 and an event in one, with zero usage where that is asked
    for, and in a form of its own on /generate. No Retry-After."""
    with full(engine):
        for path, body in ((CHAT, chat_body()), (TEXT, text_body()), (GENERATE, generate_body())):
            answer = engine.post(path, body)
            assert answer.status == 503
            assert "retry-after" not in answer.headers
            assert_error(answer.json, QUEUE_FULL, kind="503")
        error, usage = engine.chat(stream=True, stream_options=WITH_USAGE).events
        assert error == event_error(QUEUE_FULL)
        assert (usage["choices"], usage["usage"]) == ([], NOTHING_USED)
        assert engine.chat(stream=True).events == [event_error(QUEUE_FULL)]
        assert engine.post(TEXT, text_body(stream=True)).events == [event_error(QUEUE_FULL)]
        rid = uuid4().hex
        (event,) = engine.generate(rid=rid, stream=True).events
        assert (event["text"], event["output_ids"]) == ("", [])
        meta = event["meta_info"]
        reason = {"type": "abort", "status_code": 503, "message": QUEUE_FULL}
        assert meta["finish_reason"] == reason
        assert (meta["id"], meta["completion_tokens"]) == (rid, 0)
        assert not {"prompt_tokens", "cached_tokens"} & meta.keys()
        assert engine.get("/ready").status == 200


def check_aborted_while_queued(engine: Engine) -> None:
    """05a: 200 with nothing used; a chat stream says its role, /generate its own message."""
    mark = uuid4().hex
    with occupied(engine):
        asked: Json = {"rid": f"{mark}-s", "stream": True, "stream_options": WITH_USAGE}
        stream, whole = queue(
            engine, (CHAT, chat_body(**asked)), (CHAT, chat_body(rid=f"{mark}-w"))
        )
        engine.abort(rid=mark + "-s")
        engine.abort(rid=mark + "-w")
        role, finish, usage = stream.result().events
        assert_shape(role, chat_chunk({"role": "assistant", "content": ""}))
        assert finish["choices"][0]["finish_reason"] == "abort"
        assert usage["usage"] == NOTHING_USED
        answer = whole.result()
        assert answer.status == 200
        assert_shape(answer.json, whole_chat())
        assert answer.json["choices"][0]["finish_reason"] == "abort"
        assert answer.json["usage"] == NOTHING_USED
        (own,) = queue(engine, (GENERATE, generate_body(rid=f"{mark}-g")))
        engine.abort(rid=f"{mark}-g")
        meta = own.result().json["meta_info"]
        assert meta["finish_reason"] == QUEUED_ABORT
        assert meta["completion_tokens"] == 0
        assert not {"prompt_tokens", "cached_tokens"} & meta.keys()


def check_leaving_the_queue(engine: Engine) -> None:
    """05a: a stream's client that leaves while it waits gives its place up at once."""
    with occupied(engine):
        with waiting_client(engine, CHAT, chat_body(stream=True)):
            engine.until_load(num_waiting_reqs=1)
        soon(lambda: engine.load()["num_waiting_reqs"] == 0, "an empty queue", within_s=12)
        assert not engine.idle


def check_a_higher_number_first(engine: Engine) -> None:
    """05b: the one that came later and asks for more is served first."""
    with occupied(engine) as place:
        low, high = queue(
            engine,
            (CHAT, chat_body(max_tokens=2, priority=1)),
            (CHAT, chat_body(max_tokens=2, priority=5)),
        )
        ended: list[str] = []
        low.add_done_callback(lambda _: ended.append("low"))
        high.add_done_callback(lambda _: ended.append("high"))
        engine.abort(rid=place.event()["id"])
        assert (high.result().status, low.result().status) == (200, 200)
        soon(lambda: len(ended) == 2, "both callbacks")
        assert ended == ["high", "low"]


def check_who_runs_stays(engine: Engine) -> None:
    """Without preemption the highest number waits like everybody."""
    with occupied(engine, max_tokens=24, priority=0) as place:
        high = engine.later(CHAT, chat_body(max_tokens=12, priority=50))
        while not (finish := place.event()["choices"][0]["finish_reason"]):
            pass
        assert not high.done()
        assert finish == "length"
        assert high.result().status == 200


def check_the_least_preferred_is_thrown_out(engine: Engine) -> None:
    """05b: a better arrival takes the place of a queued one, whole or stream; a worse one is
    refused; none at all is the worst."""
    with occupied(engine):
        whole, kept = queue(
            engine,
            (CHAT, chat_body(max_tokens=2, priority=0)),
            (CHAT, chat_body(max_tokens=2, priority=8)),
        )
        for fields in (chat_body(priority=-9), chat_body()):
            answer = engine.post(CHAT, fields)
            assert answer.status == 503
            assert_error(answer.json, QUEUE_FULL, kind="503")
        asked: Json = {"stream": True, "stream_options": WITH_USAGE, "max_tokens": 2}
        stream = engine.later(CHAT, chat_body(priority=3, **asked))
        thrown = whole.result()
        assert thrown.status == 503
        assert_error(thrown.json, THROWN_OUT, kind="503")
        better = engine.later(CHAT, chat_body(priority=9, max_tokens=2))
        error, usage = stream.result().events
        assert error == event_error(THROWN_OUT)
        assert usage["usage"] == NOTHING_USED
        engine.abort(abort_all=True)
        assert kept.result().json["choices"][0]["finish_reason"] == "abort"
        assert better.result().json["choices"][0]["finish_reason"] == "abort"


def check_all_that_wait(engine: Engine) -> None:
    """`abort_all` ends those that wait too, who have used nothing."""
    with full(engine) as waiting:
        engine.abort(abort_all=True)
        for each in waiting:
            assert each.result().json["usage"] == NOTHING_USED

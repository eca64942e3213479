"""What an engine's own counters count, and when: they are the witness of what is metered."""

import re
from contextlib import ExitStack
from uuid import uuid4

from conformance.aborts import LONG, begun
from conformance.engine import CHAT, Engine, chat_body, generate_body, soon
from conformance.information import COUNTERS, counted


def witness(engine: Engine) -> list[float]:
    """What it has counted: prompt, generated and cached tokens, requests, aborts."""
    return [counted(engine, name) for name in COUNTERS[:5]]


def rise(engine: Engine, before: list[float]) -> list[float]:
    """What it has counted since."""
    return [now - was for now, was in zip(witness(engine), before, strict=True)]


def check_metrics_count(engine: Engine) -> None:
    """06: prompt, cached, generated and requests rise by what the usages say."""
    engine.come_to_rest()
    text = f"A cave ({uuid4().hex})"
    names = ("prompt_tokens_total", "generation_tokens_total", "num_requests_total")
    before = [counted(engine, name) for name in names]
    cached_before = counted(engine, "cached_tokens_total")
    usages = [engine.chat(text).json["usage"] for _ in range(2)]
    prompt = sum(usage["prompt_tokens"] for usage in usages)
    rises = [counted(engine, name) - was for name, was in zip(names, before, strict=True)]
    assert rises == [prompt, 8, 2]
    cached = counted(engine, "cached_tokens_total") - cached_before
    assert cached == usages[1]["prompt_tokens"] - 1


def check_metrics_of_the_aborted(engine: Engine) -> None:
    """06: who was aborted is counted, with what was made until then."""
    before = witness(engine)
    rid = uuid4().hex
    with engine.streaming("/generate", generate_body(tokens=LONG, rid=rid)) as stream:
        stream.event()
        for name in (rid, rid, uuid4().hex):
            engine.abort(rid=name)
        meta = stream.rest().events[-1]["meta_info"]
    wanted = [meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"], 1, 1]
    assert rise(engine, before) == wanted


def check_metrics_count_at_the_end(engine: Engine) -> None:
    """Who runs is in no counter of tokens or requests; who has ended is, whole."""
    before = witness(engine)
    with ExitStack() as stack:
        stream = begun(engine, stack, uuid4().hex, max_tokens=40)
        for _ in range(5):
            stream.event()
        assert rise(engine, before) == [0, 0, 0, 0, 0]
        usage = stream.rest().events[-1]["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert rise(engine, before) == [usage["prompt_tokens"], 40, cached, 1, 0]


def check_metrics_of_who_left(engine: Engine) -> None:
    """A stream whose client has gone counts as one that was aborted by its id."""
    before = witness(engine)
    with ExitStack() as stack:
        begun(engine, stack, uuid4().hex)
    soon(lambda: engine.idle, "an idle engine")
    soon(lambda: rise(engine, before)[3:] == [1, 1], "the count of who left")
    prompt, made, *_ = rise(engine, before)
    assert prompt > 0
    assert 1 <= made < LONG


def check_metrics_of_all_aborted(engine: Engine) -> None:
    """`abort_all` is one abort, however many it ends."""
    before = witness(engine)
    with ExitStack() as stack:
        streams = [begun(engine, stack, uuid4().hex) for _ in range(3)]
        engine.abort(abort_all=True)
        for stream in streams:
            stream.rest()
    assert rise(engine, before)[3:] == [3, 1]


def check_metrics_of_streams(engine: Engine) -> None:
    """Streams and whole answers are counted apart."""

    def split() -> dict[str, float]:
        said = engine.get("/metrics").text
        found = re.findall(
            r'^sglang:num_requests_total{[^}]*is_streaming="(\w+)"[^}]*} (\S+)$', said, re.MULTILINE
        )
        sums = {"true": 0.0, "false": 0.0}
        for streaming, value in found:
            sums[streaming] += float(value)
        return sums

    before = split()
    engine.chat()
    with engine.streaming(CHAT, chat_body()) as stream:
        stream.rest()
    engine.chat()
    assert {name: value - before[name] for name, value in split().items()} == {
        "true": 1,
        "false": 2,
    }


def check_metrics_know_no_health(engine: Engine) -> None:
    """The token that `/health` generates is in no counter; that it was asked is."""
    before, asked = witness(engine), counted(engine, "http_responses_total")
    for path in ("/health", "/health_generate"):
        assert engine.get(path).status == 200
    assert rise(engine, before) == [0, 0, 0, 0, 0]
    assert counted(engine, "http_responses_total") - asked >= 2

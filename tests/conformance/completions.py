"""Text completions (`captures/02c`, `09s`)."""

from uuid import uuid4

from conformance.engine import TEXT, Engine, text_body
from conformance.shapes import (
    CHOICE_END,
    CLOSING_TEXT_USAGE,
    METADATA,
    USAGE,
    USAGE_WITHOUT_DETAILS,
    assert_shape,
)

CHUNK = {
    "id": "096ac593ceb6452b98346cc198f027e6",
    "object": "text_completion",
    "created": 1795963900,
    "model": "tiny",
    "choices": [{"index": 0, "text": "obj", **CHOICE_END, "finish_reason": None}],
}
LAST_CHUNK = {**CHUNK, "choices": [{"index": 0, "text": " te", **CHOICE_END}]}
OPTIONS = {"include_usage": True, "continuous_usage_stats": True}


def check_whole(engine: Engine) -> None:
    """Names, order and kinds of a whole answer; nothing cached is an object here."""
    answer = engine.post(TEXT, text_body())
    assert_shape(answer.json, {**LAST_CHUNK, "usage": USAGE, "metadata": METADATA})
    assert answer.json["usage"]["completion_tokens"] == 4


def check_stream(engine: Engine) -> None:
    """02c: the finish is on the last text; the usage of a chunk with nothing cached has no
    details, that of the closing event says 0 and leaves the empty out."""
    engine.come_to_rest()
    body = text_body(stream=True, stream_options=OPTIONS)
    *chunks, last, usage = engine.post(TEXT, body).events
    for event in chunks:
        assert_shape(event, {**CHUNK, "usage": USAGE_WITHOUT_DETAILS})
    assert_shape(last, {**LAST_CHUNK, "usage": USAGE_WITHOUT_DETAILS})
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["choices"][0]["text"]
    assert_shape(usage, {**CHUNK, "choices": [], "usage": CLOSING_TEXT_USAGE})
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert usage["usage"]["completion_tokens"] == 4


def check_stream_of_what_is_cached(engine: Engine) -> None:
    """How much was cached is said at the end alone; a chunk's usage never says it."""
    body = text_body(stream=True, stream_options=OPTIONS)
    first, again = (engine.post(TEXT, body).events for _ in range(2))
    prompt = first[-1]["usage"]["prompt_tokens"]
    for event in again[:-1]:
        assert event["usage"]["prompt_tokens_details"] is None
    assert again[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": prompt - 1}


def check_sixteen_by_default(engine: Engine) -> None:
    """Without `max_tokens` it is 16."""
    body = text_body()
    del body["max_tokens"]
    assert engine.post(TEXT, body).json["usage"]["completion_tokens"] == 16


def check_several_prompts(engine: Engine) -> None:
    """Each prompt of a list is a choice, in order; usage is their sum. Token ids are prompts
    too."""
    text = f"A lake ({uuid4().hex}) lies"
    prompts = [text, f"{text} in the"]
    alone = [engine.post(TEXT, text_body(prompt)).json for prompt in prompts]
    answer = engine.post(TEXT, text_body(prompt=prompts)).json
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert [choice["text"] for choice in answer["choices"]] == [
        each["choices"][0]["text"] for each in alone
    ]
    for name in ("prompt_tokens", "completion_tokens"):
        assert answer["usage"][name] == sum(each["usage"][name] for each in alone)
    ids = engine.tokens_of(prompt=text)
    given = engine.post(TEXT, text_body(prompt=ids)).json
    assert given["usage"]["prompt_tokens"] == len(ids) == alone[0]["usage"]["prompt_tokens"]
    assert given["choices"][0]["text"] == alone[0]["choices"][0]["text"]

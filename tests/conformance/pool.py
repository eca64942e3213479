"""A KV pool that is smaller than the context (`captures/10_kv_full.txt`)."""

from conformance.engine import Engine
from conformance.shapes import USAGE, assert_error, assert_shape

CLAMP_MARGIN = 2
"""Prompt and answer together stay so far below the pool."""
INPUT_MARGIN = 6
TOO_LONG = (
    "Input length ({count} tokens) exceeds the maximum allowed length ({limit} tokens). Use a "
    "shorter input or enable --allow-auto-truncate."
)


def check_silent_clamp(engine: Engine) -> None:
    """10c: more than the pool has room for is cut short without a word: reason length."""
    asked = "river " * (engine.pool_tokens - 50)
    answer = engine.chat(asked, max_tokens=engine.pool_tokens * 2)
    assert answer.status == 200
    usage = answer.json["usage"]
    assert usage["total_tokens"] == engine.pool_tokens - CLAMP_MARGIN
    assert usage["completion_tokens"] > 0
    assert answer.json["choices"][0]["finish_reason"] == "length"


def check_clamp_of_generate(engine: Engine) -> None:
    """10c: the finish reason's length is what was made."""
    ids = engine.tokens_of(prompt="lake " * engine.pool_tokens)[: engine.pool_tokens - 12]
    answer = engine.generate(input_ids=ids, tokens=engine.pool_tokens * 2).json
    made = 12 - CLAMP_MARGIN
    assert len(answer["output_ids"]) == made
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": made}


def check_prompt_over_the_pool(engine: Engine) -> None:
    """10d: 400 without a stream; 200 and an event in one, and a usage that is none's."""
    text = "river " * (engine.pool_tokens + 100)
    count = len(engine.tokens_of(messages=[{"role": "user", "content": text}]))
    message = TOO_LONG.format(count=count, limit=engine.pool_tokens - INPUT_MARGIN)
    answer = engine.chat(text)
    assert answer.status == 400
    assert_error(answer.json, message)
    error, usage = engine.chat(text, stream=True, stream_options={"include_usage": True}).events
    kind = "BAD_REQUEST"
    said = {"object": "error", "message": message, "type": kind, "param": None, "code": 400}
    assert error == {"error": said}
    assert_shape(usage["usage"], USAGE)
    assert usage["choices"] == []
    assert (usage["usage"]["prompt_tokens"], usage["usage"]["completion_tokens"]) == (1, 1)


def check_prompt_over_the_pool_of_generate(engine: Engine) -> None:
    """10d: the same on /generate, in its own forms."""
    text = "river " * (engine.pool_tokens + 100)
    count = len(engine.tokens_of(prompt=text))
    message = TOO_LONG.format(count=count, limit=engine.pool_tokens - INPUT_MARGIN)
    answer = engine.generate(text)
    assert (answer.status, answer.json) == (400, {"error": {"message": message}})
    (event,) = engine.generate(text, stream=True).events
    reason = event["meta_info"]["finish_reason"]
    wanted = {
        "type": "abort",
        "message": message,
        "status_code": 400,
        "err_type": "BadRequestError",
    }
    assert reason == wanted
    assert event["meta_info"]["prompt_tokens"] == event["meta_info"]["completion_tokens"] == 1


def check_the_longest_prompt(engine: Engine) -> None:
    """10d, from the other side: one below the input's limit is served, the limit itself not."""
    limit = engine.pool_tokens - INPUT_MARGIN
    ids = engine.tokens_of(prompt="sea " * engine.pool_tokens)[:limit]
    assert len(ids) == limit
    assert engine.generate(input_ids=ids, tokens=2).status == 400
    served = engine.generate(input_ids=ids[:-1], tokens=2)
    assert served.status == 200
    assert served.json["meta_info"]["prompt_tokens"] == limit - 1
    assert served.json["meta_info"]["completion_tokens"] == 2

"""What is refused, and in which words (`captures/09…`). A stream is refused before it begins."""

from conformance.engine import CHAT, TEXT, Engine, chat_body, text_body
from conformance.shapes import ERROR, assert_error, assert_shape

HI = [{"role": "user", "content": "hi"}]
OVER_CONTEXT = (
    "Requested token count exceeds the model's maximum context length of {limit} tokens. You "
    "requested a total of {total} tokens: {prompt} tokens from the input messages and {maximum} "
    "tokens for the completion. Please reduce the number of tokens in the input messages or the "
    "completion to fit within the limit."
)


def check_prompt_over_context(engine: Engine) -> None:
    """09a, 09b: with both counts, whole and as a stream."""
    words = "alpha " * engine.context_tokens * 2
    count = len(engine.tokens_of(messages=[{"role": "user", "content": words}]))
    message = (
        f"The input ({count} tokens) is longer than the model's context length "
        f"({engine.context_tokens} tokens)."
    )
    for stream in (False, True):
        answer = engine.chat(words, stream=stream)
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/json"
        assert_error(answer.json, message)
    answer = engine.post(TEXT, text_body(words))
    assert answer.status == 400
    assert_shape(answer.json, ERROR)


def check_maximum_over_context(engine: Engine) -> None:
    """09c: in words of its own on a chat."""
    maximum = engine.context_tokens + 1000
    message = (
        f"max_completion_tokens is too large: {maximum}.This model supports at most "
        f"{engine.context_tokens} completion tokens."
    )
    for stream in (False, True):
        answer = engine.chat("hi", max_tokens=maximum, stream=stream)
        assert answer.status == 400
        assert_error(answer.json, message)


def check_prompt_and_maximum_over_context(engine: Engine) -> None:
    """09s, 09u: the two together, on a chat and on a text."""
    limit = engine.context_tokens
    prompt = len(engine.tokens_of(messages=HI))
    counts = {"limit": limit, "prompt": prompt, "maximum": limit - 1, "total": prompt + limit - 1}
    for stream in (False, True):
        answer = engine.post(CHAT, chat_body(messages=HI, max_tokens=limit - 1, stream=stream))
        assert answer.status == 400
        assert_error(answer.json, OVER_CONTEXT.format(**counts))
    prompt = len(engine.tokens_of(prompt="hello"))
    counts = {"limit": limit, "prompt": prompt, "maximum": 2 * limit, "total": prompt + 2 * limit}
    answer = engine.post(TEXT, text_body("hello", max_tokens=2 * limit))
    assert answer.status == 400
    assert_error(answer.json, OVER_CONTEXT.format(**counts))


def check_the_context_is_filled(engine: Engine) -> None:
    """09u, from the other side: exactly as much as there is room for is taken."""
    prompt = len(engine.tokens_of(messages=HI))
    body = chat_body(messages=HI, max_tokens=engine.context_tokens - prompt)
    with engine.streaming(CHAT, body) as stream:
        assert stream.event()["choices"]


def check_empty_messages(engine: Engine) -> None:
    """09j."""
    answer = engine.post(CHAT, {"model": "tiny", "messages": [], "max_tokens": 2})
    assert answer.status == 400
    assert_error(answer.json, "Messages cannot be empty.")


def check_bad_temperature(engine: Engine) -> None:
    """09e."""
    answer = engine.post(CHAT, {"model": "tiny", "messages": HI, "temperature": -1})
    assert answer.status == 400
    assert_error(answer.json, "temperature must be a non-negative finite number, got -1.0.")


def check_bad_bodies(engine: Engine) -> None:
    """09f, 09g, 09h: bad JSON, a bad type, a field that is missing. Another `type`; the rest of
    the words are the framework's."""
    bodies = [
        b'{"model":"tiny","messages":[',
        b"",
        b'{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":"abc"}',
        b'{"model":"tiny","max_tokens":3}',
        b'{"model":"tiny","messages":"hi"}',
        b'{"model":"tiny","messages":[{"role":"user","content":"hi"}],"n":"two"}',
    ]
    for body in bodies:
        answer = engine.post(CHAT, body)
        assert answer.status == 400, body
        assert_shape(answer.json, ERROR)
        assert answer.json["type"] == "Bad Request"
        assert "validation error" in answer.message


def check_no_such_path(engine: Engine) -> None:
    """09q; `/get_load` of older ones is gone."""
    for path in ("/v1/nope", "/get_load"):
        answer = engine.get(path)
        assert (answer.status, answer.text) == (404, '{"detail":"Not Found"}')


def check_no_such_method(engine: Engine) -> None:
    """09r."""
    for path in (CHAT, TEXT, "/v1/tokenize"):
        answer = engine.get(path)
        assert (answer.status, answer.text) == (405, '{"detail":"Method Not Allowed"}')
        assert answer.headers["allow"] == "POST"
    answer = engine.post("/v1/models", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


def check_negative_maximum(engine: Engine) -> None:
    """A maximum below 0 is refused."""
    answer = engine.chat("hi", max_tokens=-1)
    assert answer.status == 400
    assert_shape(answer.json, ERROR)


def check_odd_values(engine: Engine) -> None:
    """Values that are outside what sampling allows, each by its name."""
    for name, value in (("top_p", 0), ("top_p", 1.5), ("min_p", -0.1), ("frequency_penalty", 3)):
        answer = engine.chat("hi", **{name: value})
        assert answer.status == 400, (name, value)
        assert_shape(answer.json, ERROR)
        assert name in answer.message

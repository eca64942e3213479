"""Events of an engine's stream, as SGLang sends them."""

import json


def chunk(
    *,
    delta: dict[str, object] | None = None,
    text: str | None = None,
    finish: str | None = None,
    usage: dict[str, object] | None = None,
    **more: object,
) -> bytes:
    """One chunk with one choice; `text` makes it one of `/v1/completions`."""
    choice: dict[str, object] = {"index": 0, "finish_reason": finish, "logprobs": None, **more}
    if text is None:
        choice["delta"] = delta or {}
    else:
        choice["text"] = text
    event: dict[str, object] = {
        "id": "engine-id",
        "object": "chat.completion.chunk" if text is None else "text_completion",
        "created": 1,
        "model": "engine-model",
        "choices": [choice],
    }
    if usage is not None:
        event["usage"] = usage
    return json.dumps(event).encode()


def role() -> bytes:
    """The first chunk of a chat stream: no token yet."""
    return chunk(delta={"role": "assistant", "content": ""})


def content(words: str, *, usage: dict[str, object] | None = None) -> bytes:
    """Generated text."""
    return chunk(delta={"content": words}, usage=usage)


def finish(reason: str = "stop", *, usage: dict[str, object] | None = None) -> bytes:
    """The chunk that says how it ended."""
    return chunk(delta={}, finish=reason, usage=usage)


def counts(
    prompt: int, output: int, *, cached: int | None = None, reasoning: int = 0
) -> dict[str, object]:
    """A usage object of SGLang's; `cached` None is a worker without `--enable-cache-report`."""
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + output,
        "completion_tokens": output,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        "reasoning_tokens": reasoning,
        "completion_tokens_details": None,
    }


def usage(prompt: int, output: int, *, cached: int | None = None, reasoning: int = 0) -> bytes:
    """The last chunk before `[DONE]`: no choice, the final counts."""
    return json.dumps(
        {
            "id": "engine-id",
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": counts(prompt, output, cached=cached, reasoning=reasoning),
        }
    ).encode()


def error(code: int, message: str = "The request queue is full.") -> bytes:
    """An error inside a stream that began with 200."""
    return json.dumps(
        {"error": {"object": "error", "message": message, "type": "X", "code": code}}
    ).encode()


def answer(words: list[str], *, prompt: int = 5, reason: str = "stop") -> list[bytes]:
    """A whole chat stream: each word one token."""
    return [
        role(),
        *(
            content(word, usage=counts(prompt, number))
            for number, word in enumerate(words, start=1)
        ),
        finish(reason),
        usage(prompt, len(words), cached=0),
    ]


def _spoilt(choice: bytes) -> bytes:
    return b'{"id":"engine-id","choices":[{"index":0,' + choice + b"}]}"


ODD_CHUNKS = {
    "a text that is not UTF-8": _spoilt(b'"delta":{"content":"a\xff\xfeb"}'),
    "a token that is not UTF-8": _spoilt(
        b'"delta":{"content":"a"},"logprobs":{"content":[{"token":"\xff"}]}'
    ),
    "a part of a tool call that is not UTF-8": _spoilt(
        b'"delta":{"tool_calls":[{"index":0,"extra":"\xff","function":{"arguments":"{}"}}]}'
    ),
    "half a pair of surrogates": _spoilt(b'"delta":{"content":"a\\ud83d"}'),
    "a number beyond all": _spoilt(
        b'"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1e999}]}'
    ),
    "log probabilities that are none": chunk(delta={"content": "a"}, logprobs=[1]),
    "content in parts": chunk(delta={"content": [{"type": "text", "text": "hi"}]}),
    "reasoning in parts": chunk(delta={"reasoning_content": ["hi"]}),
    "reasoning by its other name in parts": chunk(delta={"reasoning": ["hi"]}),
    "a refusal that is no text": chunk(delta={"refusal": {"text": "no"}}),
    "a text that is none": _spoilt(b'"text":7'),
    "a role that is none": chunk(delta={"role": 7, "content": "a"}),
    "tool calls that are none": chunk(delta={"content": "a", "tool_calls": [7]}),
    "a tool call's index that is none": chunk(delta={"tool_calls": [{"index": "0"}]}),
    "a tool call's id that is none": chunk(delta={"tool_calls": [{"index": 0, "id": 7}]}),
    "a tool call's type that is none": chunk(delta={"tool_calls": [{"index": 0, "type": 7}]}),
    "a tool's name that is none": chunk(
        delta={"tool_calls": [{"index": 0, "function": {"name": ["f"]}}]}
    ),
    "arguments that are an object": chunk(
        delta={"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}]}
    ),
    "a function call that is none": chunk(delta={"function_call": {"arguments": {"a": 1}}}),
    "a matched stop in a list": chunk(delta={"content": "a"}, matched_stop=["x"]),
    "a finish reason that is none": _spoilt(b'"delta":{"content":"a"},"finish_reason":7'),
    "a delta that is none": _spoilt(b'"delta":"a"'),
}
"""Chunks that an OpenAI SDK breaks on, or reads as another text."""

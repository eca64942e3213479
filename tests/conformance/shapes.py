"""What an answer looks like: its names in their order and the kinds of its values."""

import json

from conformance.engine import Json

USAGE = {
    "prompt_tokens": 37,
    "total_tokens": 45,
    "completion_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 36},
    "reasoning_tokens": 0,
    "completion_tokens_details": None,
}
USAGE_WITHOUT_DETAILS = {**USAGE, "prompt_tokens_details": None}
CLOSING_TEXT_USAGE = {
    name: value for name, value in USAGE.items() if name != "completion_tokens_details"
}
"""The one usage without `completion_tokens_details`: that of a text stream's last event."""
NOTHING_USED = {
    "prompt_tokens": 0,
    "total_tokens": 0,
    "completion_tokens": 0,
    "prompt_tokens_details": {"cached_tokens": 0},
    "reasoning_tokens": 0,
    "completion_tokens_details": None,
}
METADATA = {
    "weight_version": "default",
    "weight_versions": [{"version": "default", "start": 0, "end": 8}],
}
CHOICE_END: Json = {"logprobs": None, "finish_reason": "length", "matched_stop": None}
CHAT_MESSAGE = {"role": "assistant", "content": "igits',number", "reasoning_content": None}
ERROR = {
    "object": "error",
    "message": "Messages cannot be empty.",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
QUEUE_FULL = "The request queue is full."
THROWN_OUT = "The request is aborted by a higher priority request."


def whole_chat(**choice: object) -> Json:
    """`captures/01a_chat_nonstream.txt`, with other values in its choice."""
    return {
        "id": "a4d466de7e034f6092927f986ea15ee0",
        "object": "chat.completion",
        "created": 1795963900,
        "model": "tiny",
        "choices": [{"index": 0, "message": CHAT_MESSAGE, **CHOICE_END, **choice}],
        "usage": USAGE,
        "metadata": METADATA,
    }


def chat_chunk(delta: Json, *, finish: str | None = None, usage: Json | None = None) -> Json:
    """An event of `captures/01d_chat_stream_include_usage.txt`."""
    end = {**CHOICE_END, "finish_reason": finish}
    chunk = {
        "id": "9d8c589d19cf4cd8bac342443b4723e2",
        "object": "chat.completion.chunk",
        "created": 1795963900,
        "model": "tiny",
        "choices": [{"index": 0, "delta": {"reasoning_content": None, **delta}, **end}],
    }
    return chunk if usage is None else {**chunk, "usage": usage}


ROLE = chat_chunk({"role": "assistant", "content": ""})
CONTENT = chat_chunk({"content": "igits"})
CONTENT_WITH_USAGE = chat_chunk({"content": "igits"}, usage=USAGE)
FINISH = chat_chunk({}, finish="length")
CLOSING_USAGE = {**CONTENT, "choices": [], "usage": USAGE}


def shape(value: object) -> object:
    """Names in their order and kinds of values, without the values."""
    if isinstance(value, dict):
        return [(name, shape(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def assert_shape(answer: object, captured: object) -> None:
    """Fail, showing the answer, where it is shaped otherwise or says that it is another thing."""
    assert shape(answer) == shape(captured), json.dumps(answer)[:3000]
    if isinstance(answer, dict) and isinstance(captured, dict):
        assert answer.get("object") == captured.get("object")


def assert_error(answer: Json, message: str, *, kind: str = "BadRequestError") -> None:
    """Fail where this is not SGLang's error object, with this message."""
    code = int(kind) if kind.isdigit() else 400
    assert answer == {**ERROR, "message": message, "type": kind, "code": code}
    assert list(answer) == list(ERROR)

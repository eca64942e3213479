"""Encoded answers are SGLang's captured ones to the byte."""

import json

import msgspec
import pytest
import sglang_captures as captured

from backend.sglang_http.answers import (
    Answer,
    ChatChoice,
    ChatChunkChoice,
    ChatDelta,
    ChatMessageOut,
    TextChoice,
    encode,
    event,
    metadata,
    wire_logprobs,
    wire_usage,
)
from backend.sglang_http.generation import TokenLogprob, Usage


def chunk(identity: str, choice: ChatChunkChoice, **usage: object) -> bytes:
    """A chat chunk as captured."""
    answer = Answer(identity, "chat.completion.chunk", 1795963900, "tiny", [choice])
    return encode(msgspec.structs.replace(answer, **usage))


def test_whole_answer() -> None:
    """A whole chat completion."""
    message = ChatMessageOut("assistant", "igits',number <=edUL qu")
    answer = Answer(
        "a4d466de7e034f6092927f986ea15ee0",
        "chat.completion",
        1795963900,
        "tiny",
        [ChatChoice(0, message, None, "length", None)],
        wire_usage(Usage(37, 8, 0)),
        metadata(8),
    )
    assert encode(answer) == captured.CHAT


def test_chat_chunks() -> None:
    """Role, content with and without usage, finish, and usage alone."""
    first, second = "bce2d860726340a5a82d5c1b86f71b11", "9d8c589d19cf4cd8bac342443b4723e2"
    role = ChatChunkChoice(0, ChatDelta(role="assistant", content=""))
    content = ChatChunkChoice(0, ChatDelta(content="igits"))
    finish = ChatChunkChoice(0, ChatDelta(), finish_reason="length")
    assert chunk(first, role) == captured.ROLE_CHUNK
    assert chunk(second, content) == captured.CONTENT_CHUNK
    assert chunk(second, finish) == captured.FINISH_CHUNK
    usage = wire_usage(Usage(37, 1, 36))
    assert chunk(first, content, usage=usage) == captured.CONTENT_CHUNK_CONTINUOUS
    usage = wire_usage(Usage(37, 8, 36))
    assert chunk(second, content, choices=[], usage=usage) == captured.USAGE_CHUNK


def test_usage_without_cache_report() -> None:
    """What is not known about the cache is null."""
    usage = wire_usage(Usage(6, 2, None))
    answer = Answer(
        "54f94e75547f4699a0e8c1443d3bf393",
        "chat.completion.chunk",
        1795964055,
        "tiny",
        list[ChatChunkChoice](),
        usage,
    )
    assert encode(answer) == captured.USAGE_CHUNK_WITHOUT_CACHE_REPORT


def test_text_chunks() -> None:
    """A text completion's chunk, and its closing usage that leaves empty fields out."""
    choice = TextChoice(0, "InvalidOperation")
    answer = Answer(
        "096ac593ceb6452b98346cc198f027e6",
        "text_completion",
        1795963900,
        "tiny",
        [choice],
        wire_usage(Usage(5, 1, None)),
    )
    assert encode(answer) == captured.TEXT_CHUNK_CONTINUOUS
    closing = wire_usage(Usage(5, 6, 0), closing_text=True)
    last = msgspec.structs.replace(answer, choices=list[TextChoice](), usage=closing)
    assert encode(last) == captured.TEXT_USAGE_CHUNK
    assert event(last) == b"data: " + captured.TEXT_USAGE_CHUNK + b"\n\n"


def test_logprobs() -> None:
    """Log probabilities with their alternatives; null where none were asked for."""
    chosen = TokenLogprob("igits", list(b"igits"), -3.25)
    other = TokenLogprob(" hand", list(b" hand"), -3.5)
    entry = TokenLogprob("igits", list(b"igits"), -3.25, (chosen, other))
    encoded = msgspec.json.encode(wire_logprobs([entry]))
    assert encoded == captured.CHAT_LOGPROBS
    assert wire_logprobs([]) is None


@pytest.mark.parametrize("text", ['quote " and \\', "\u2028 line", "😀", "a\x00b", "\n\n"])
def test_any_text_is_one_line(text: str) -> None:
    """No text can break an event into two lines."""
    body = event(Answer("i", "o", 1, "m", [TextChoice(0, text)]))
    assert body.endswith(b"\n\n")
    assert b"\n" not in body[:-2]
    assert json.loads(body[6:])["choices"][0]["text"] == text

"""What a stream says and when it said it, however its bytes are cut."""

import json

import engine_events as events
import pytest

from backend.loadtest import sse_reader
from backend.loadtest.sse_reader import SseReader


def sse(payload: bytes) -> bytes:
    return b"data: " + payload + b"\n\n"


STREAM = b"".join(
    [
        sse(events.role()),
        b": keep-alive\n\n",
        sse(events.content("Seine")),
        sse(events.content(', "Loire"\n\ndata: {"error": 1}')),
        sse(events.content("")),
        sse(events.finish("length")),
        sse(json.dumps({"choices": [], "usage": events.counts(5, 7, cached=3)}).encode()),
        sse(b"[DONE]"),
    ]
)


def test_tokens_usage_and_finish() -> None:
    """Each is taken from its event; a role, a comment and an empty content are no token."""
    reader = SseReader()
    for at_ms, event in enumerate(STREAM.split(b"\n\n")[:-1]):
        reader.feed(event + b"\n\n", float(at_ms * 10))
    assert (reader.first_token_at_ms, reader.last_token_at_ms) == (20.0, 30.0)
    assert list(reader.gaps_ms) == [10.0]
    assert reader.finish_reason == "length"
    assert reader.error is None
    assert reader.usage is not None
    assert (reader.usage.prompt_tokens, reader.usage.completion_tokens) == (5, 7)
    assert reader.usage.cached_tokens == 3


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_the_cuts_of_reads_change_nothing(size: int, line_end: bytes) -> None:
    """Nor does the other line end that the format allows."""
    stream = STREAM.replace(b"\n", line_end)
    reader = SseReader()
    for start in range(0, len(stream), size):
        reader.feed(stream[start : start + size], 1.0)
    assert list(reader.gaps_ms) == [0.0]
    assert reader.finish_reason == "length"
    assert reader.usage is not None
    assert reader.usage.completion_tokens == 7
    assert reader.error is None


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "Hm"},
        {"reasoning": "Hm"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
    ],
)
def test_reasoning_and_tool_calls_are_tokens(delta: dict[str, object]) -> None:
    """The first of them is the first token."""
    reader = SseReader()
    reader.feed(sse(events.chunk(delta={"content": None, **delta})), 4.0)
    assert reader.first_token_at_ms == 4.0


def test_continuous_usage_is_cumulative() -> None:
    """The last one counts."""
    reader = SseReader()
    for output in (1, 2, 3):
        reader.feed(sse(events.content("a", usage=events.counts(5, output))), 1.0)
    assert reader.usage is not None
    assert (reader.usage.completion_tokens, reader.usage.cached_tokens) == (3, None)


def test_events_of_more_lines() -> None:
    """Names and ids are passed over; lines of data are one payload."""
    reader = SseReader()
    first, second = events.content("a").split(b",", 1)
    reader.feed(b"event: message\nid: 1\ndata:" + first + b",\ndata: " + second + b"\n\n", 1.0)
    assert reader.first_token_at_ms == 1.0
    assert reader.error is None


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b'{"error": {"code": "worker_failed", "type": "upstream_error"}}', "worker_failed"),
        (b'{"error": {"type": "SERVICE_UNAVAILABLE", "code": 503}}', "503"),
        (b'{"error": "out of memory"}', None),
        (b'{"object": "error", "message": "m", "code": 400}', "400"),
        (b"not json", "unreadable_event"),
        (b'{"choices": "odd"}', "unreadable_event"),
    ],
)
def test_errors_are_kept_not_raised(payload: bytes, code: str | None) -> None:
    """The first counts."""
    reader = SseReader()
    reader.feed(sse(payload) + sse(b'{"error": {"code": "later"}}'), 1.0)
    assert reader.error is not None
    assert reader.error.code == code


def test_an_error_of_null_is_none() -> None:
    """Some servers name the field in every chunk."""
    reader = SseReader()
    reader.feed(sse(events.content("a").replace(b"{", b'{"error": null, ', 1)), 1.0)
    assert reader.error is None
    assert reader.first_token_at_ms == 1.0


def test_an_event_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of it is bounded."""
    monkeypatch.setattr(sse_reader, "EVENT_BYTES_MAX", 100)
    reader = SseReader()
    reader.feed(b"data: " + b"x" * 90, 1.0)
    assert reader.error is None
    reader.feed(b"x" * 90, 1.0)
    assert reader.error is not None
    assert reader.error.code == "event_too_long"

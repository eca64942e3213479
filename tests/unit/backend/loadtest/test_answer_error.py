"""What a refusal says, and which end it is."""

import pytest

from backend.loadtest.answer_error import AnswerError, end_of_event, end_of_status, read_error


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            b'{"error":{"message":"m","type":"sequences","code":"rate_limit_exceeded"}}',
            AnswerError("rate_limit_exceeded", "sequences"),
        ),
        (
            b'{"object":"error","message":"The request queue is full.","type":"503","code":503}',
            AnswerError("503", "503"),
        ),
        (b'{"error":{"type":"server_error","code":null}}', AnswerError("server_error")),
        (b'{"error":{"code":{"prompt":"secret"},"type":true}}', AnswerError()),
        (b'{"error":"words of a prompt"}', AnswerError()),
        (b"<html>", AnswerError()),
        (b"[1]", AnswerError()),
        (b"\xff", AnswerError()),
    ],
)
def test_codes_are_read_in_every_shape(body: bytes, error: AnswerError) -> None:
    """And only codes: no message, and nothing nested."""
    assert read_error(body).code == error.code


def test_statuses_are_ends() -> None:
    """Each kind of refusal apart."""
    ends = [end_of_status(status) for status in (429, 503, 400, 404, 500, 502, 504, 302)]
    assert ends == [
        "rate_limited", "unavailable", "refused", "refused", "failed", "failed", "failed", "failed",
    ]  # fmt: skip


def test_a_full_queue_told_in_a_stream_is_no_failure() -> None:
    """SGLang says 503 inside a 200, the gateway by its type."""
    assert end_of_event(AnswerError("503", "SERVICE_UNAVAILABLE")) == "unavailable"
    assert end_of_event(AnswerError("no_capacity", "overloaded_error")) == "unavailable"
    assert end_of_event(AnswerError("429")) == "rate_limited"
    assert end_of_event(AnswerError("worker_failed", "upstream_error")) == "failed"
    assert end_of_event(AnswerError()) == "failed"

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    LimitReached,
    Overloaded,
    WeirError,
    WorkerTimeout,
)
from gateway.wire.error_body import error_json, retry_headers


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ContextLengthExceeded("too long", param="messages"),
            ("too long", "invalid_request_error", "messages", "context_length_exceeded"),
        ),
        (
            LimitReached("full", kind="tokens", retry_after_ms=5),
            ("full", "tokens", None, "rate_limit_exceeded"),
        ),
        (Overloaded("no", code="no_worker"), ("no", "overloaded_error", None, "no_worker")),
    ],
)
def test_the_body_is_openais(error: WeirError, expected: tuple[str, str, str | None, str]) -> None:
    """S21: message, type, param and code inside `error`, and nothing else."""
    message, kind, param, code = expected
    assert json.loads(error_json(error)) == {
        "error": {"message": message, "type": kind, "param": param, "code": code}
    }


@given(wait_ms=st.integers(-10, 10**9))
def test_waits_are_whole_seconds_of_at_most_a_minute(wait_ms: int) -> None:
    """S19, S20: SDKs ignore more than 60 s, and 0 would be a busy loop."""
    headers = dict(retry_headers(LimitReached("x", kind="tokens", retry_after_ms=wait_ms)))
    seconds, ms = int(headers[b"retry-after"]), int(headers[b"retry-after-ms"])
    assert 1 <= seconds <= 60
    assert 1 <= ms <= 60_000
    assert (seconds - 1) * 1000 < ms <= seconds * 1000


def test_every_503_says_when_to_come_back() -> None:
    """S20: ours as well as a tenant's own limit."""
    assert dict(retry_headers(Overloaded("x", code="no_capacity")))[b"retry-after"] == b"1"


@pytest.mark.parametrize("error", [InvalidRequest("x"), WorkerTimeout("x")])
def test_other_errors_do_not_ask_to_wait(error: WeirError) -> None:
    """A 400 will not get better."""
    assert retry_headers(error) == []

"""What a client may hold, send and wait for on a connection (raw sockets)."""

import time
from collections.abc import Iterator
from uuid import UUID

import pytest
from log_capture import logging_to
from protocol_server import (
    CHUNKED,
    DRAIN_MS_MAX,
    GET,
    HEAD_MS_MAX,
    STREAM,
    Served,
    closes_within,
    rest,
    running_protocol,
    swallowed,
    until,
)

from gateway.telemetry.metrics import ERRORS


@pytest.fixture
def served() -> Iterator[Served]:
    """A server of this test's own."""
    with running_protocol() as running:
        yield running


def test_trailers_are_no_headers(served: Served) -> None:
    """An Authorization that comes after the body is dropped."""
    with served.connect() as client:
        client.sendall(CHUNKED % b"/headers" + b"1\r\nx\r\n0\r\nauthorization: Bearer k\r\n\r\n")
        assert until(client, b"host").endswith(b"host transfer-encoding")


@pytest.mark.parametrize("opening", [b"0\r\nx: ", b"5;extension="])
def test_what_makes_no_progress_is_cut_off(served: Served, opening: bytes) -> None:
    """An endless trailer or chunk extension closes the connection; its request counts as left."""
    with served.connect() as client:
        client.sendall(CHUNKED % b"/" + opening)
        assert swallowed(client, b"a" * 65536, at_most=100_000_000) < 20_000_000
    assert served.app.left.wait(2)


@pytest.mark.parametrize("beginning", [b"", b"POST / HTTP/1.1\r\nhost: x\r\n", b"\r\n"])
def test_a_head_has_a_deadline(served: Served, beginning: bytes) -> None:
    """Silent and half-open connections close, dripped to or not."""
    with served.connect() as silent, served.connect() as dripping:
        started = time.monotonic()
        silent.sendall(beginning)
        dripping.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert closes_within(dripping, 2, b"x")
        assert rest(silent) == b""
        assert HEAD_MS_MAX / 1000 * 0.9 < time.monotonic() - started < 2


def test_a_further_head_has_a_deadline_too(served: Served) -> None:
    """Counted from its first byte; an idle connection is not closed by it."""
    with served.connect() as client:
        client.sendall(GET)
        until(client, b"\r\n\r\n0")
        client.settimeout(HEAD_MS_MAX / 1000 * 1.5)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.sendall(b"GET /")
        client.settimeout(2)
        assert rest(client) == b""


def test_an_answer_has_no_deadline_of_a_head(served: Served) -> None:
    """A stream outlives it."""
    with served.connect() as client:
        client.sendall(STREAM)
        until(client, b"first")
        assert not closes_within(client, HEAD_MS_MAX / 1000 * 1.5, b"x")


def test_an_early_answer_waits_for_the_body(served: Served) -> None:
    """The sender of 20 MB reads it, and the connection is used again."""
    with served.connect() as client:
        size = 20_000_000
        client.sendall(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
        client.sendall(b"x" * size)
        assert b"close" not in until(client, b"\r\n\r\n0")
        client.sendall(GET)
        until(client, b"\r\n\r\n0")


def test_a_body_that_does_not_end_ends_its_connection(served: Served) -> None:
    """The answer comes after the bound and says so; nothing more is swallowed."""
    with served.connect() as client:
        client.sendall(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        answer = rest(client)
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\n0")
    with served.connect() as client:
        client.sendall(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        assert closes_within(client, 2, b" ")


def test_an_endless_body_is_drained_to_a_bound(served: Served) -> None:
    """Not one byte more than 32 MiB and what the sockets hold."""
    with served.connect() as client:
        client.sendall(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000000\r\n\r\n")
        assert swallowed(client, b"x" * 1_000_000, at_most=500_000_000) < 100_000_000


def test_a_refused_expectation_is_answered_at_once(served: Served) -> None:
    """Its body is not asked for."""
    head = b"POST /early HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n"
    started = time.monotonic()
    answer = served.exchange(head)
    assert time.monotonic() - started < DRAIN_MS_MAX / 1000
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close\r\n" in answer


@pytest.mark.parametrize(
    ("status", "request_bytes"),
    [
        (b"400", b"\x16\x03\x01\x02" * 10),
        (b"400", CHUNKED % b"/" + b"zz\r\n"),
        (b"413", b"GET / HTTP/1.1\r\nx: " + b"a" * 100_000 + b"\r\n\r\n"),
        (b"413", b"GET / HTTP/1.1\r\nx: " + b"a" * 5_000_000 + b"\r\n\r\n"),
        (b"413", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"),
        (b"413", b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 30_000 + b"\r\n"),
    ],
)
def test_what_is_no_request_is_answered(
    served: Served, status: bytes, request_bytes: bytes
) -> None:
    """In OpenAI's shape, with a request id, and the connection ends."""
    answer = served.exchange(request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert body.startswith(b'{"error":')
    headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert headers[b"connection"] == b"close"
    assert UUID(headers[b"x-request-id"].decode()).version == 7
    assert int(headers[b"content-length"]) == len(body)


def test_who_is_refused_and_stays_is_closed(served: Served) -> None:
    """The answer is out; what is sent on is thrown away for a bounded time."""
    with served.connect() as client:
        client.sendall(b"\x16\x03\x01")
        until(client, b"}}")
        assert closes_within(client, 2, b"x")


def test_what_is_no_request_is_counted_and_found_in_the_log(served: Served) -> None:
    """By the id that its sender was told."""
    series = ERRORS.labels("invalid_value", "other")
    before = series._value.get()
    with logging_to(form="json", requests="all") as log:
        answer = served.exchange(b"\x16\x03\x01\x02" * 10)
    assert series._value.get() == before + 1
    line = next(each for each in log.objects if each["message"] == "answered with an error")
    assert line["request_id"].encode() in answer

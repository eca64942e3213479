"""One request at a time on a connection, and what else arrives on it (raw sockets)."""

from collections.abc import Iterator

import pytest
from protocol_server import CHUNKED, CONTINUE, GET, STREAM, Served, running_protocol, until


@pytest.fixture
def served() -> Iterator[Served]:
    """A server of this test's own."""
    with running_protocol() as running:
        yield running


@pytest.mark.parametrize("more", [STREAM, b"\r\n\r\n", b"\x16\x03garbage", b"G", b"x" * 300_000])
@pytest.mark.parametrize("joined", [True, False], ids=["one segment", "later"])
def test_a_leave_is_seen_whatever_was_pipelined(served: Served, more: bytes, joined: bool) -> None:
    """A second request, or garbage, blinds nobody."""
    with served.connect() as client:
        client.sendall(STREAM + more if joined else STREAM)
        until(client, b"first")
        if not joined:
            client.sendall(more)
    assert served.app.left.wait(2)
    assert served.app.requests == 1


@pytest.mark.parametrize("more", [STREAM * 2, b"\x16\x03garbage\r\n\r\n", b"POST / HTTP/1.1\r\nho"])
def test_what_is_pipelined_is_not_in_the_answer(served: Served, more: bytes) -> None:
    """The first request is answered whole and alone, then the connection closes."""
    served.app.may_end.set()
    answer = served.exchange(STREAM + more)
    assert answer.endswith(b"5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer
    assert served.app.requests == 1


def test_a_pipelined_body_is_not_the_first_ones(served: Served) -> None:
    """The first request keeps its own body, complete in the same segment."""
    request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
    answer = served.exchange(request + b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabcdefghi")
    assert answer.endswith(b"\r\n\r\n3")


def test_sequential_requests_share_a_connection(served: Served) -> None:
    """Keep-alive, also after chunked bodies of one byte a chunk and Expect: 100-continue."""
    with served.connect() as client:
        for _ in range(3):
            client.sendall(GET)
            assert until(client, b"\r\n\r\n0").startswith(b"HTTP/1.1 200")
        client.sendall(CHUNKED % b"/" + b"1\r\nx\r\n" * 500 + b"0\r\n\r\n")
        assert b"close" not in until(client, b"\r\n\r\n500")
        head = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        client.sendall(head)
        assert until(client, b"\r\n\r\n") == CONTINUE
        client.sendall(b"ab")
        assert until(client, b"\r\n\r\n2")

"""The tenant's end of a request, on scripted ASGI callables."""

import asyncio
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.errors import InvalidRequest, RequestTooLarge
from gateway.http.connection import AsgiConnection


def connection_of(
    pieces: list[bytes], failure: Exception | None = None, *, ends: bool = True
) -> AsgiConnection:
    """A connection whose client sends these pieces, and to which writing raises this."""
    waiting = [
        {"type": "http.request", "body": piece, "more_body": i < len(pieces) - 1 or not ends}
        for i, piece in enumerate(pieces)
    ]

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(_message: Any) -> None:
        if failure is not None:
            raise failure

    scope: Any = {"type": "http"}
    return AsgiConnection(
        scope, receive, send, SystemClock(), body_bytes_max=10, body_read_ms_max=50
    )


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("unable to perform operation on <TCPTransport closed=True reading=False>"),
        ConnectionResetError("reset by peer"),
        BrokenPipeError("broken pipe"),
    ],
)
async def test_a_write_to_a_closed_connection_is_a_leave(failure: Exception) -> None:
    """It raises nothing, and whoever asked is called back, once."""
    connection = connection_of([b"{}"], failure)
    leaves: list[str] = []
    connection.on_leave(lambda: leaves.append("left"))
    assert await connection.body() == b"{}"
    await connection.start(200, [])
    await connection.write(b"data")
    await connection.finish()
    assert connection.left
    assert leaves == ["left"]
    assert connection.blocked_since_us is None


async def test_a_bug_in_the_order_of_messages_is_no_leave() -> None:
    """uvicorn's other RuntimeErrors are raised."""
    connection = connection_of([b"{}"], RuntimeError("Response content longer than Content-Length"))
    with pytest.raises(RuntimeError, match="longer"):
        await connection.write(b"data")
    assert not connection.left


async def test_a_body_over_the_limit_is_refused_before_its_end() -> None:
    """Nothing more of it is read here."""
    with pytest.raises(RequestTooLarge):
        await connection_of([b"x" * 6, b"x" * 6], ends=False).body()
    assert await connection_of([b"x" * 6, b"x" * 4]).body() == b"x" * 10


async def test_a_slow_body_is_refused() -> None:
    """It has a deadline."""
    with pytest.raises(InvalidRequest, match="in time"):
        await connection_of([b"x"], ends=False).body()

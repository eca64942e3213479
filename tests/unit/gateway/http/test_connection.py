"""The tenant's end of a request, on scripted ASGI callables."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.errors import InvalidRequest, Overloaded, RequestTooLarge
from gateway.http.connection import AsgiConnection


def uncounted(_: int) -> None:
    """There is room for all."""


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
    assert await connection.body(uncounted) == b"{}"
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
        await connection_of([b"x" * 6, b"x" * 6], ends=False).body(uncounted)
    assert await connection_of([b"x" * 6, b"x" * 4]).body(uncounted) == b"x" * 10


async def test_a_slow_body_is_refused() -> None:
    """It has a deadline."""
    with pytest.raises(InvalidRequest, match="in time"):
        await connection_of([b"x"], ends=False).body(uncounted)


def room_for(bytes_max: int, told: list[int]) -> Callable[[int], None]:
    """Refuses what is over it, and notes what it was told of."""

    def arrived(size: int) -> None:
        told.append(size)
        if sum(told) > bytes_max:
            raise Overloaded("no room", code="no_capacity")

    return arrived


async def test_each_piece_is_counted_as_it_comes_and_may_be_refused() -> None:
    """By what has come, whatever else is to come; what is refused leaves nothing behind in the
    frames that its error keeps until it has been answered."""
    told: list[int] = []
    assert await connection_of([b"x" * 4, b"", b"x" * 3]).body(room_for(7, told)) == b"x" * 7
    assert told == [4, 0, 3]
    told.clear()
    with pytest.raises(Overloaded) as refused:
        await connection_of([b"x" * 4, b"x" * 4], ends=False).body(room_for(7, told))
    kept = [
        entry.locals["body"]
        for entry in refused.traceback
        if "body" in entry.locals and str(entry.path).endswith("connection.py")
    ]
    assert kept
    assert not any(kept)

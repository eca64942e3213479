"""A connector that asks once more between having a connection and sending anything on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

_check: ContextVar[Callable[[], None] | None] = ContextVar("check_before_send", default=None)


@contextmanager
def opening_with(check: Callable[[], None] | None) -> Iterator[None]:
    """What is opened by a task that is made within this block is checked so before it sends."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


class GatedConnector(aiohttp.TCPConnector):
    """To connect may take seconds, in which a permission to send can end: what `check` raises
    closes the connection with no byte of the request sent on it."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection, new or from the pool, that may be sent on."""
        connection = await super().connect(req, traces, timeout)
        check = _check.get()
        if check is not None:
            try:
                check()
            except BaseException:
                connection.close()
                raise
        return connection

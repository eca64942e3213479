"""Reading the bodies of requests without stopping the event loop.

A body of megabytes takes tenths of a second to check, most of it in one call that holds the
interpreter, in whatever thread it runs. So large ones are read by a process of this gateway's own,
started when it is first needed; what it takes is nobody else's time. Small ones are read here: to
hand them over would cost more than to read them.
"""

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from weakref import WeakValueDictionary

import msgspec

from gateway.adapters.body_frames import LENGTH, Question, understood
from gateway.errors import Overloaded
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request

HERE_BYTES_MAX = 96 * 1024
"""The most that is read on the loop: some milliseconds for the worst of bodies."""
READ_S = 10.0
_COMMAND = (sys.executable, "-m", "gateway.adapters.body_process")
_BUFFER_BYTES = 1024 * 1024
_AWAY = (OSError, EOFError, TimeoutError, msgspec.MsgspecError)
_log = logging.getLogger(__name__)


class BodyReader:
    """Implements `gateway.serving.ports.RequestReader`. One large body at a time, and of each
    tenant one waits for that: nobody fills the queue before others."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._tenants: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self, endpoint: Endpoint, body: bytes, headers: Mapping[bytes, bytes], *, tenant_id: str
    ) -> CompletionRequest:
        """See `gateway.serving.ports.RequestReader`."""
        if len(body) <= HERE_BYTES_MAX:
            return read_request(endpoint, body, headers)
        own = {name: value for name, value in headers.items() if name.startswith(b"x-weir-")}
        question = msgspec.msgpack.encode(Question(endpoint, own, len(body)))
        of_tenant = self._tenants.setdefault(tenant_id, asyncio.Lock())
        async with of_tenant, self._turn:
            reply = await self._asked(question, body)
        return understood(reply, body)

    async def stop(self) -> None:
        """End the process. A later large body starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _asked(self, question: bytes, body: bytes) -> bytes:
        """The process's reply; asked of a fresh one where it had ended. Raises Overloaded."""
        for _ in range(2):
            try:
                async with asyncio.timeout(READ_S):
                    return await self._ask(question, body)
            except _AWAY as error:
                _log.warning("the process that reads bodies: %s", type(error).__name__)
                await self.stop()
            except BaseException:
                # What is still on its way would be taken for the next question's reply.
                await self.stop()
                raise
        raise Overloaded("the request could not be read in time", code="no_capacity")

    async def _ask(self, question: bytes, body: bytes) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, limit=_BUFFER_BYTES
            )
        to, replies = self._process.stdin, self._process.stdout
        assert to is not None  # noqa: S101 - both are pipes
        assert replies is not None  # noqa: S101
        to.writelines((LENGTH.pack(len(question)), question, body))
        await to.drain()
        (length,) = LENGTH.unpack(await replies.readexactly(LENGTH.size))
        return await replies.readexactly(length)

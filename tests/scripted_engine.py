"""An engine whose streams do what a test wrote down, step by step, and a client that records."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import engine_events as events

from gateway.domain.tenant import Worker
from gateway.errors import WorkerFailed
from gateway.serving.ports import ClientGone


class Hang:
    """A step: nothing more comes until the stream is aborted."""


HANG = Hang()
Step = bytes | Exception | Callable[[], None] | Hang | asyncio.Event
ABORTED = (events.finish("abort"), events.usage(5, 2))


@dataclass(eq=False)
class ScriptedStream:
    """Yields bytes, raises exceptions, calls what is callable, waits for an Event.

    An abort takes effect at the next step: the stream then yields `after_abort` and ends, or, where
    that is None (an engine without abort), it is cut.
    """

    worker: Worker
    path: str
    upstream_id: str
    body: bytes
    script: Sequence[Step]
    after_abort: Sequence[bytes] | None = ABORTED
    check_send: Callable[[], None] | None = None
    on_connected: Callable[[], None] = lambda: None
    provider_request_id: str | None = None
    aborts: int = 0
    closed: bool = False
    _aborted: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.check_send is not None:
            await asyncio.sleep(0)
            self.on_connected()
            self.check_send()
        for step in self.script:
            await asyncio.sleep(0)
            if isinstance(step, asyncio.Event):
                await self._either(step)
            elif isinstance(step, Hang):
                await self._aborted.wait()
            if self._aborted.is_set():
                if self.after_abort is None:
                    raise WorkerFailed("cut")
                for event in self.after_abort:
                    yield event
                return
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, Exception):
                raise step
            elif callable(step):
                step()

    async def _either(self, event: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(e.wait()) for e in (event, self._aborted)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def abort(self) -> None:
        assert not self.closed, "an ended stream is not aborted"
        self.aborts += 1
        self._aborted.set()

    async def aclose(self) -> None:
        self.closed = True


class ScriptedEngine:
    """Hands out one script a stream, in order."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = list(scripts)
        self.after_abort: list[Sequence[bytes] | None] = []
        self.streams: list[ScriptedStream] = []
        self.traceparents: list[str | None] = []
        """What each was told of a trace."""
        self.on_connected: Callable[[], None] = lambda: None
        """Called where a stream that is checked before it sends has its connection."""

    def stream(
        self,
        worker: Worker,
        path: str,
        upstream_id: str,
        body: bytes,
        *,
        check_send: Callable[[], None] | None = None,
        traceparent: str | None = None,
    ) -> ScriptedStream:
        opened = ScriptedStream(
            worker, path, upstream_id, body, self.scripts[len(self.streams)], check_send=check_send
        )
        opened.on_connected = self.on_connected
        if len(self.streams) < len(self.after_abort):
            opened.after_abort = self.after_abort[len(self.streams)]
        self.streams.append(opened)
        self.traceparents.append(traceparent)
        return opened


class RecordingConnection:
    """A client that reads all, leaves when told to, and holds the gateway to ASGI's order."""

    def __init__(self, body: bytes = b"", *, leaves_early: bool = False) -> None:
        self._body = body
        self._leaves_early = leaves_early
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self.finished = False
        self.left = False
        self.gave_up = False
        self.blocked_since_us: int | None = None
        self.block: Callable[[], int | None] = lambda: None
        """Returns since when a write blocks, or None; asked at each write."""
        self.unblocked = asyncio.Event()
        self.on_write: Callable[[bytes], None] = lambda data: None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def sent(self) -> bytes:
        """The body so far."""
        return b"".join(self.pieces)

    def leave(self) -> None:
        """The client goes."""
        if not self.left and not self.finished:
            self.left = True
            for callback in self._callbacks:
                callback()

    def on_leave(self, callback: Callable[[], None]) -> None:
        if self.left:
            callback()
        else:
            self._callbacks.append(callback)

    async def body(self, arrived: Callable[[int], None]) -> bytes:
        await asyncio.sleep(0)
        arrived(len(self._body))
        if self._leaves_early:
            self.left = True
            raise ClientGone
        return self._body

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        assert self.status is None, "an answer starts once"
        if self.left:
            return
        names = [name for name, _ in headers]
        assert len(names) == len(set(names)), "no header twice"
        self.status, self.headers = status, dict(headers)

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)
        if self.left:
            return
        assert self.status is not None, "the body comes after the headers"
        assert not self.finished, "nothing comes after the end"
        self.blocked_since_us = self.block()
        if self.blocked_since_us is not None:
            await self.unblocked.wait()
            self.blocked_since_us = None
            if self.left:
                return
        self.pieces.append(data)
        self.on_write(data)

    async def finish(self, data: bytes = b"") -> None:
        if self.left:
            return
        assert self.status is not None, "the body comes after the headers"
        assert not self.finished, "an answer ends once"
        self.pieces.append(data)
        self.finished = True

    def give_up(self) -> None:
        self.gave_up = self.left = True
        self.unblocked.set()

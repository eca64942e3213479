"""The two forms of an answer: a stream of events, or one body assembled from them."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from gateway.errors import WeirError
from gateway.serving.choice import Choice
from gateway.serving.ports import ClientConnection
from gateway.wire import sse
from gateway.wire.assembly import ChoiceAssembly, Json, whole_answer
from gateway.wire.error_body import error_json, retry_headers
from gateway.wire.request import CompletionRequest
from gateway.wire.upstream import ChunkRewriter, Event

Headers = list[tuple[bytes, bytes]]


class Answer(Protocol):
    """What the relay hands events to."""

    async def take(self, choice: Choice, data: bytes, event: Event) -> None:
        """One event of a choice."""

    async def complete(self, usage: Json) -> None:
        """All choices finished; the record is durable, with these counts: the last bytes go out."""

    async def fail(self, error: WeirError) -> None:
        """It failed: an HTTP status where nothing was sent, else the error event, never [DONE]."""

    async def close(self) -> None:
        """Nothing more is to be sent, whether or not anything was."""


def response_id(request: CompletionRequest, request_id: str) -> str:
    """The client's id of an answer."""
    return ("chatcmpl-" if request.endpoint == "chat" else "cmpl-") + request_id


def _worker_header(choices: Sequence[Choice]) -> Headers:
    """The worker of the first choice, where it is to be shown."""
    worker = choices[0].worker if choices else None
    return [] if worker is None else [(b"x-weir-worker", worker.id.encode())]


async def answer_error(
    connection: ClientConnection, error: WeirError, headers: Sequence[tuple[bytes, bytes]]
) -> None:
    """An error as a whole HTTP answer."""
    body = error_json(error)
    await connection.start(
        error.status,
        [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *headers,
            *error.headers,
            *retry_headers(error),
        ],
    )
    await connection.finish(body)


class StreamAnswer:
    """Server-sent events. Headers go out with the first event, or after `keepalive_s`, from when
    on comments keep the connection; until they do a failure is a status. Headers name the worker of
    the first of the choices `shown`."""

    def __init__(
        self,
        connection: ClientConnection,
        request: CompletionRequest,
        request_id: str,
        created: int,
        headers: Headers,
        *,
        shown: Sequence[Choice] = (),
        keepalive_s: float,
    ) -> None:
        self._connection = connection
        self._request = request
        self._headers = headers
        self._shown = shown
        self._keepalive_s = keepalive_s
        self._started = False
        self._keepalive: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(keepalive_s, self._keep_alive)
        self._rewriter = ChunkRewriter(
            response_id=response_id(request, request_id),
            model=request.model,
            created=created,
            chunk_object=(
                "chat.completion.chunk" if request.endpoint == "chat" else "text_completion"
            ),
            keep_usage=request.continuous_usage and request.sequences == 1,
        )

    def _keep_alive(self) -> None:
        self._keepalive = asyncio.get_running_loop().create_task(self._comment())

    async def _comment(self) -> None:
        while True:
            await self._start()
            await self._connection.write(sse.KEEPALIVE)
            await asyncio.sleep(self._keepalive_s)

    async def _start(self) -> None:
        if not self._started:
            self._started = True
            await self._connection.start(
                200,
                [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-cache"),
                    *self._headers,
                    *_worker_header(self._shown),
                ],
            )

    async def close(self) -> None:
        """No more comments."""
        self._timer.cancel()
        if self._keepalive is not None:  # only where the first event took that long
            self._keepalive.cancel()
            await asyncio.wait([self._keepalive])
            self._keepalive = None

    async def take(self, choice: Choice, data: bytes, event: Event) -> None:
        """Pass an event on; the engine's own last usage chunk is held back for the end."""
        if not event.has_choice or choice.failed:
            return
        await self.close()
        await self._start()
        shown = self._rewriter.rewrite(data, choice.index, event.usage)
        await self._connection.write(sse.event(shown))

    async def complete(self, usage: Json) -> None:
        """Usage where it was asked for, then [DONE]."""
        await self.close()
        await self._start()
        last = sse.DONE_EVENT
        if self._request.include_usage:
            last = sse.event(self._rewriter.usage_chunk(usage)) + last
        await self._connection.finish(last)

    async def fail(self, error: WeirError) -> None:
        """The error event, and the end without [DONE]."""
        await self.close()
        if self._started:
            await self._connection.finish(sse.event(error_json(error)))
        else:
            await answer_error(self._connection, error, self._headers)


class WholeAnswer:
    """One JSON body."""

    def __init__(
        self,
        connection: ClientConnection,
        request: CompletionRequest,
        request_id: str,
        created: int,
        headers: Headers,
        *,
        shown: Sequence[Choice] = (),
    ) -> None:
        self._connection = connection
        self._request = request
        self._request_id = request_id
        self._created = created
        self._headers = headers
        self._shown = shown
        chat = request.endpoint == "chat"
        self._assemblies = [ChoiceAssembly(i, chat=chat) for i in range(request.sequences)]

    async def take(self, choice: Choice, data: bytes, event: Event) -> None:
        """Keep what the event adds."""
        if event.has_choice:
            self._assemblies[choice.index].add(data)

    async def complete(self, usage: Json) -> None:
        """The whole answer."""
        body = whole_answer(
            response_id=response_id(self._request, self._request_id),
            model=self._request.model,
            created=self._created,
            chat=self._request.endpoint == "chat",
            choices=[assembly.choice() for assembly in self._assemblies],
            usage=usage,
        )
        await self._connection.start(
            200,
            [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                *self._headers,
                *_worker_header(self._shown),
            ],
        )
        await self._connection.finish(body)

    async def fail(self, error: WeirError) -> None:
        """An error with its status."""
        await answer_error(self._connection, error, self._headers)

    async def close(self) -> None:
        """Nothing runs beside it."""

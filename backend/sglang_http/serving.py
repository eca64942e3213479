"""The endpoints that generate, as ASGI applications.

They are raw ASGI because they watch for the client's leave while they answer, whole or streamed,
and because a fault may cut the connection.
"""

import asyncio
import time
from dataclasses import replace
from typing import Protocol

from litestar.types import HTTPScope, Receive, Scope, Send

from backend.sglang_http.completions import Completion, late_refusal
from backend.sglang_http.connection import Connection, connection_of
from backend.sglang_http.engine import Engine
from backend.sglang_http.faults import ConnectionCut, EndedEarly
from backend.sglang_http.generate import generate_refusal, plan_generate
from backend.sglang_http.generate_answer import GenerateAnswer
from backend.sglang_http.planning import Plan, plan_chat, plan_completion
from backend.sglang_http.refusals import EngineFailure, InputTooLong, Refused
from backend.sglang_http.running import Write
from backend.sglang_http.wire import ChatBody, CompletionBody, GenerateBody, decode

BODY_BYTES_MAX = 64 * 1024 * 1024
STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]


class ClientLeft(Exception):
    """The client closed the connection before its request was read."""


class Running(Protocol):
    """A request that was submitted, and how it is answered."""

    async def whole(self) -> bytes: ...
    async def stream(self, write: Write, connection: Connection | None = None) -> None: ...
    def abandon(self) -> None: ...


class Route(Protocol):
    """What tells one endpoint from the others."""

    async def plan(self, raw: bytes, engine: Engine) -> Plan:
        """Read a body. Raises Refused."""

    def submit(self, plan: Plan, engine: Engine) -> Running:
        """Raises Refused."""

    def refusal(self, refused: Refused) -> tuple[bytes, bool]:
        """The answer's body, and whether it is that of a stream."""


class ChatRoute:
    """POST /v1/chat/completions."""

    async def plan(self, raw: bytes, engine: Engine) -> Plan:
        """Read a body. Raises Refused."""
        return await plan_chat(decode(raw, ChatBody), engine)

    def submit(self, plan: Plan, engine: Engine) -> Running:
        """Raises Refused."""
        return Completion(plan, engine, chat=True)

    def refusal(self, refused: Refused) -> tuple[bytes, bool]:
        """The answer's body, and whether it is that of a stream."""
        return _refusal(refused, chat=True)


class TextRoute:
    """POST /v1/completions."""

    async def plan(self, raw: bytes, engine: Engine) -> Plan:
        """Read a body. Raises Refused."""
        return await plan_completion(decode(raw, CompletionBody), engine)

    def submit(self, plan: Plan, engine: Engine) -> Running:
        """Raises Refused."""
        return Completion(plan, engine, chat=False)

    def refusal(self, refused: Refused) -> tuple[bytes, bool]:
        """The answer's body, and whether it is that of a stream."""
        return _refusal(refused, chat=False)


class GenerateRoute:
    """POST /generate."""

    async def plan(self, raw: bytes, engine: Engine) -> Plan:
        """Read a body. Raises Refused."""
        return await plan_generate(decode(raw, GenerateBody), engine)

    def submit(self, plan: Plan, engine: Engine) -> Running:
        """Raises Refused."""
        return GenerateAnswer(plan, engine)

    def refusal(self, refused: Refused) -> tuple[bytes, bool]:
        """The answer's body, and whether it is that of a stream."""
        return generate_refusal(refused)


def _refusal(refused: Refused, *, chat: bool) -> tuple[bytes, bool]:
    if isinstance(refused, InputTooLong) and refused.in_stream is not None:
        return b"".join(late_refusal(refused, refused.in_stream, chat=chat)), True
    return refused.body(), False


class Endpoint:
    """An endpoint that generates."""

    def __init__(self, engine: Engine, route: Route) -> None:
        self._engine = engine
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        arrived_s = time.monotonic()
        http: HTTPScope = scope  # type: ignore[assignment] # registered for HTTP only
        if http["method"] != "POST":
            body = b'{"detail":"Method Not Allowed"}'
            await respond(send, 405, body, extra=[(b"allow", b"POST")])
            return
        try:
            plan = await self._plan(await _read_body(receive), arrived_s)
            running = self._route.submit(plan, self._engine)
        except ClientLeft:
            return
        except Refused as refused:
            body, is_stream = self._route.refusal(refused)
            if is_stream:
                await _respond_stream(send, body)
            else:
                await respond(send, refused.status, body)
            return
        poll_s = 0.0 if plan.stream else self._engine.info.leave_poll_s
        leave = asyncio.create_task(_watch(receive, running, arrived_s, poll_s))
        connection = connection_of(http)
        try:
            if plan.stream:
                await _send_stream(send, running, connection)
            else:
                await _send_whole(send, running)
        except ConnectionCut as cut:
            running.abandon()
            leave.cancel()
            if connection is None:
                return
            if cut.reset:
                connection.reset()
            else:
                connection.close()
            # The server complains of an answer left unfinished while its connection is there.
            await _departure(receive)
        finally:
            leave.cancel()
            running.abandon()

    async def _plan(self, raw: bytes, arrived_s: float) -> Plan:
        if not self._engine.ready:
            raise Refused("The server is not ready.", status=503, kind="503")
        plan = await self._route.plan(raw, self._engine)
        faults = self._engine.faults
        fault = faults.take(plan.sequences[0].rid) if faults is not None else None
        if fault is not None and fault.kind == "error_500":
            raise Refused("Internal server error", status=500, kind="InternalServerError")
        sequences = [
            replace(request, fault=fault, arrived_s=arrived_s) for request in plan.sequences
        ]
        return replace(plan, sequences=sequences)


async def _read_body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        if message["type"] != "http.request":
            continue
        chunks.append(message["body"])
        size += len(message["body"])
        if size > BODY_BYTES_MAX:
            raise Refused("The body is too large.", status=413, kind="Request Entity Too Large")
        if not message["more_body"]:
            return b"".join(chunks)


async def _watch(receive: Receive, running: Running, arrived_s: float, poll_s: float) -> None:
    """Stop the sequences once the client's leave is noticed: at once, or at the next poll since
    its request arrived."""
    await _departure(receive)
    if poll_s:
        await asyncio.sleep(poll_s - (time.monotonic() - arrived_s) % poll_s)
    running.abandon()


async def _departure(receive: Receive) -> None:
    """Return once the connection is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_stream(send: Send, running: Running, connection: Connection | None) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})

    async def write(payload: bytes) -> None:
        await send({"type": "http.response.body", "body": payload, "more_body": True})

    await running.stream(write, connection)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _respond_stream(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_whole(send: Send, running: Running) -> None:
    try:
        body = await running.whole()
    except EngineFailure as failure:
        refused = failure.refused()
        await respond(send, refused.status, refused.body())
    except EndedEarly:
        refused = Refused("Internal server error", status=500, kind="InternalServerError")
        await respond(send, refused.status, refused.body())
    except ConnectionCut:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        raise
    else:
        await respond(send, 200, body)


async def respond(
    send: Send, status: int, body: bytes, *, extra: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send one whole JSON answer."""
    headers = [
        *(extra or []),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})

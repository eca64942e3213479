"""The two completion endpoints as ASGI applications.

They are raw ASGI because they watch for the client's leave while they answer, whole or streamed,
and because a fault may cut the connection.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from litestar.types import HTTPScope, Receive, Scope, Send

from backend.sglang_http.completions import Completion
from backend.sglang_http.engine import Engine
from backend.sglang_http.faults import ConnectionCut, EndedEarly
from backend.sglang_http.planning import Plan, plan_chat, plan_completion
from backend.sglang_http.refusals import EngineFailure, Refused
from backend.sglang_http.wire import ChatBody, CompletionBody, decode

BODY_BYTES_MAX = 64 * 1024 * 1024
STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]

Planner = Callable[[bytes, Engine], Awaitable[Plan]]


class ClientLeft(Exception):
    """The client closed the connection before its request was read."""


async def plan_chat_body(raw: bytes, engine: Engine) -> Plan:
    """Plan POST /v1/chat/completions. Raises Refused."""
    return await plan_chat(decode(raw, ChatBody), engine)


async def plan_completion_body(raw: bytes, engine: Engine) -> Plan:
    """Plan POST /v1/completions. Raises Refused."""
    return await plan_completion(decode(raw, CompletionBody), engine)


class CompletionEndpoint:
    """One of the two endpoints."""

    def __init__(self, engine: Engine, planner: Planner, *, chat: bool) -> None:
        self._engine = engine
        self._planner = planner
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        http: HTTPScope = scope  # type: ignore[assignment] # registered for HTTP only
        if http["method"] != "POST":
            body = b'{"detail":"Method Not Allowed"}'
            await respond(send, 405, body, extra=[(b"allow", b"POST")])
            return
        try:
            plan = await self._plan(await _read_body(receive))
            completion = Completion(plan, self._engine, chat=self._chat)
        except ClientLeft:
            return
        except Refused as refused:
            await respond(send, refused.status, refused.body())
            return
        leave = asyncio.create_task(_watch(receive, completion))
        try:
            if plan.stream:
                await _send_stream(send, completion)
            else:
                await _send_whole(send, completion)
        except ConnectionCut:
            # Returning without the last body message makes the server close the connection.
            return
        finally:
            leave.cancel()
            completion.abandon()

    async def _plan(self, raw: bytes) -> Plan:
        if not self._engine.ready:
            raise Refused("The server is not ready.", status=503, kind="503")
        plan = await self._planner(raw, self._engine)
        faults = self._engine.faults
        fault = faults.take(plan.sequences[0].rid) if faults is not None else None
        if fault is None:
            return plan
        if fault.kind == "error_500":
            raise Refused("Internal server error", status=500, kind="InternalServerError")
        sequences = [replace(request, fault=fault) for request in plan.sequences]
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


async def _watch(receive: Receive, completion: Completion) -> None:
    """Stop the sequences as soon as the client has gone, streaming or not."""
    while (await receive())["type"] != "http.disconnect":
        pass
    completion.abandon()


async def _send_stream(send: Send, completion: Completion) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})

    async def write(payload: bytes) -> None:
        await send({"type": "http.response.body", "body": payload, "more_body": True})

    await completion.stream(write)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_whole(send: Send, completion: Completion) -> None:
    try:
        body = await completion.whole()
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

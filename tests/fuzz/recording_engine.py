"""An engine that speaks SGLang's HTTP quickly and judges every body that it is sent.

Run as a process: it prints its address, and `GET /fuzz/seen` says what it has seen.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
import uvicorn
from fuzz.corpus import AT_LENGTH
from fuzz.engine_fields import SHAPES, strangers
from litestar.types import ASGIApp, HTTPReceiveMessage, Receive, Scope, Send

from backend.sglang_http.app import create_app
from backend.sglang_http.server import listen
from backend.simulated.engine import SimulatedEngine
from backend.simulated.flags import SchedulerFlags
from backend.simulated.settings import SimulatedSettings

RID = re.compile(r"[0-9a-f]{36}")
SALT = re.compile(r"[0-9a-f]{32}")
COUNTING = "/v1/tokenize"
UNDERSTOOD = frozenset({
    "model", "stream", "stream_options", "max_tokens", "rid", "cache_salt", "priority", "messages",
    "prompt", "stop", "seed", "temperature",
})  # fmt: skip
REFUSED_EVERY = 8
FAULTS_MAX = 50
PRIORITY_MAX = 1_000


class Recorder:
    """ASGI in front of the engine's own application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._fields: Counter[str] = Counter()
        self._rids: list[str] = []
        self._faults: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "path" not in scope:
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == "/fuzz/seen":
            await _answer(send, self.seen())
            return
        if path not in (*SHAPES, COUNTING):
            await self._app(scope, receive, send)
            return
        raw = await _whole(receive)
        if path in SHAPES:
            self.judge(path, raw)
        unread = [self._plain(raw, whole=path in SHAPES)]

        async def again() -> HTTPReceiveMessage:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()  # type: ignore[return-value] # of a request that is HTTP

        await self._app(scope, again, send)

    def _plain(self, raw: bytes, *, whole: bool) -> bytes:
        """Mostly only what the simulated engine understands, or it would refuse most cases. A few
        completions come `whole`; a prompt with tools and calls is counted, as by SGLang."""
        try:
            body = json.loads(raw)
        except ValueError:
            return raw
        if not isinstance(body, dict):
            return raw
        if whole and int(str(body.get("rid"))[24:32], 16) % REFUSED_EVERY == 0:
            return raw  # all choices of a request, as a real engine would
        kept = {name: value for name, value in body.items() if name in UNDERSTOOD}
        for message in kept.get("messages", ()):
            if not isinstance(message.get("content"), str):
                message["content"] = "something else than text"
            if not whole:
                message.pop("tool_calls", None)
                message["role"] = "user"
        if AT_LENGTH.encode() in raw:
            kept["ignore_eos"] = True
        return json.dumps(kept).encode()

    def seen(self) -> dict[str, Any]:
        """Field names with counts, request ids, and what was wrong."""
        return {"fields": self._fields, "rids": self._rids, "faults": self._faults}

    def judge(self, path: str, raw: bytes) -> None:
        """Take one body down, and what a gateway must not have sent in it."""
        faults: list[str] = []
        try:
            body = json.loads(raw, object_pairs_hook=_Members, parse_constant=_no_constant)
            json.dumps(body, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            faults.append(f"no valid JSON: {type(error).__name__} {error}")
        else:
            faults += faults_of(path, body)
            self._fields.update(list(body))
            self._rids.append(str(body.get("rid")))
        self._faults += [f"{path}: {each}" for each in faults][: FAULTS_MAX - len(self._faults)]


class _Members(dict[str, Any]):
    """An object, and whether a key of it came twice."""

    def __init__(self, members: Sequence[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.twice = len(self) != len(members)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def faults_of(path: str, body: Any) -> list[str]:
    """What is wrong with a body that a gateway sent."""
    if not isinstance(body, _Members):
        return ["no object"]
    faults = [f"field {where}" for where in strangers(body, SHAPES[path])]
    if body.twice:
        faults.append("a field came twice")
    if not RID.fullmatch(str(body.get("rid"))):
        faults.append(f"rid {body.get('rid')}")
    if "cache_salt" in body and not SALT.fullmatch(str(body["cache_salt"])):
        faults.append("cache_salt")
    if abs(body.get("priority", 0)) > PRIORITY_MAX:
        faults.append(f"priority {body['priority']}")
    if body.get("stream") is not True:
        faults.append(f"stream {body.get('stream')}")
    if body.get("stream_options") != {"include_usage": True, "continuous_usage_stats": True}:
        faults.append(f"stream_options {body.get('stream_options')}")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        faults.append(f"max_tokens {body.get('max_tokens')}")
    faults += [f"media {url[:40]}" for url in _urls(body.get("messages")) if url[:5] != "data:"]
    return faults


def _urls(messages: Any) -> list[str]:
    """Every URL of a content part, wherever it stands in it."""
    found: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            for name, value in part.items():
                url = value.get("url") if isinstance(value, dict) else value
                if name.endswith("_url") and isinstance(url, str):
                    found.append(url)
    return found


async def _whole(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(pieces)
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


async def _answer(send: Send, document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def main(model: str) -> None:
    """Serve until stopped."""
    engine = SimulatedEngine(
        SimulatedSettings(
            model=model,
            flags=SchedulerFlags(
                context_length=4096, max_total_tokens=4_000_000, max_running_requests=1_000
            ),
            speed=20.0,
            natural_output_tokens=6,
        )
    )
    bound = listen("127.0.0.1", 0)
    app = Recorder(create_app(engine))

    async def started(scope: Scope, receive: Receive, send: Send) -> None:
        if not engine.ready:
            await engine.start()
            click.echo(f"engine at http://127.0.0.1:{bound.getsockname()[1]}")
        await app(scope, receive, send)

    config = uvicorn.Config(started, access_log=False, log_level="warning", ws="none")
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main(sys.argv[1])

"""The clients of a run: each shot at its time, to its gateway or, where nobody answers there, to
the next, as behind a load balancer."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from metering_run.accounts import Asked
from metering_run.arena import MODEL
from metering_run.script import Shot

from gateway.domain.tenant import RequestClass

PATIENCE_S = 45.0
AT_ONCE_MAX = 1_500
"""So many are under way at most; then arrivals wait."""
NOBODY = "nobody there"
DONE = b"data: [DONE]\n\n"


@dataclass
class _Seen:
    status: int | None = None
    request_id: str | None = None
    error: str = ""
    whole: bool = False
    usage: tuple[int, int] | None = None


@dataclass
class Clients:
    """All of them, in one process."""

    urls: Sequence[str]
    secrets: Mapping[RequestClass, str]
    asked: list[Asked] = field(default_factory=list)
    latest_s: float = 0.0
    """By how much the latest shot was late."""
    answered: int = 0
    """Shots that have come to an end."""
    answering: int = 0
    """Answers that have begun and not ended."""

    async def run(self, shots: Sequence[Shot], began_s: float) -> None:
        """Every shot, until the last answer."""
        loop = asyncio.get_running_loop()
        free = asyncio.Semaphore(AT_ONCE_MAX)
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            asyncio.TaskGroup() as tasks,
        ):
            for shot in shots:
                await asyncio.sleep(max(0.0, began_s + shot.at_s - loop.time()))
                await free.acquire()
                self.latest_s = max(self.latest_s, loop.time() - began_s - shot.at_s)
                task = tasks.create_task(self._call(session, shot))
                task.add_done_callback(lambda _: free.release())

    async def _call(self, session: aiohttp.ClientSession, shot: Shot) -> None:
        await self._try(session, shot)
        self.answered += 1

    async def _try(self, session: aiohttp.ClientSession, shot: Shot) -> None:
        seen = _Seen()
        try:
            async with asyncio.timeout(shot.leave_after_s):
                await self._ask(session, shot, seen)
        except TimeoutError:
            seen.error = "left" if shot.leave_after_s is not None else "no answer"
        except (aiohttp.ClientError, OSError) as error:
            seen.error = type(error).__name__
        self.asked.append(
            Asked(seen.status, seen.request_id, seen.whole, seen.error, seen.usage, shot.choices)
        )

    async def _ask(self, session: aiohttp.ClientSession, shot: Shot, seen: _Seen) -> None:
        secret = self.secrets[RequestClass.BATCH if shot.batch else RequestClass.INTERACTIVE]
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
        data = json.dumps({"model": MODEL, **shot.body})
        for further in range(len(self.urls)):
            url = self.urls[(shot.gateway + further) % len(self.urls)] + shot.path
            try:
                async with session.post(url, data=data, headers=headers) as answer:
                    self.answering += 1
                    try:
                        await _read(answer, shot, seen)
                    finally:
                        self.answering -= 1
                return
            except aiohttp.ClientConnectorError:
                seen.error = NOBODY


async def _read(answer: aiohttp.ClientResponse, shot: Shot, seen: _Seen) -> None:
    seen.status, seen.error = answer.status, ""
    identifier = answer.headers.get("x-request-id")
    seen.request_id = None if identifier is None else identifier.replace("-", "")
    raw = await answer.read()
    if answer.status != 200:
        seen.error = json.loads(raw)["error"]["code"]
        return
    if not shot.body["stream"]:
        seen.whole, seen.usage = True, _usage(json.loads(raw))
        return
    events = [line[6:] for line in raw.splitlines() if line.startswith(b"data: {")]
    seen.whole = raw.endswith(DONE)
    if seen.whole and "stream_options" in shot.body:
        seen.usage = _usage(json.loads(events[-1]))
    elif not seen.whole:
        seen.error = "error event" if events and b'"error"' in events[-1] else "cut"


def _usage(answer: Any) -> tuple[int, int]:
    usage = answer["usage"]
    return usage["prompt_tokens"], usage["completion_tokens"]

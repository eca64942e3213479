"""The clients of a storm: an open loop in one process, which waits for no answer before it asks
again."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
from storm.history import Call
from storm.schedule import Shot

PATIENCE_S = 60.0
DONE = b"data: [DONE]\n\n"


@dataclass
class Generator:
    """Sends shots and keeps what came back."""

    gateways: Sequence[str]
    model: str
    secrets: Mapping[tuple[str, int], str]
    """By tenant name and number of its key."""
    tenants: Mapping[str, str]
    """Ids by name."""
    calls: list[Call] = field(default_factory=list)
    answering: Counter[int] = field(default_factory=Counter)
    """By gateway: answers that have begun and not ended."""
    latest_s: float = 0.0
    """By how much the latest shot was late: a generator that cannot keep up is no open loop."""

    async def run(self, shots: Sequence[Shot]) -> None:
        """Every shot at its time, until the last answer."""
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            began_s = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                for shot in shots:
                    wait_s = began_s + shot.at_s - time.monotonic()
                    self.latest_s = max(self.latest_s, -wait_s)
                    await asyncio.sleep(max(0.0, wait_s))
                    tasks.create_task(self._call(session, shot))

    async def _call(self, session: aiohttp.ClientSession, shot: Shot) -> None:
        sent_ms = _now_ms()
        seen = _Seen()
        try:
            async with asyncio.timeout(shot.leave_after_s):
                await self._ask(session, shot, seen)
        except TimeoutError:
            seen.error = "left" if shot.leave_after_s is not None else "no answer"
        except aiohttp.ClientError as error:
            seen.error = type(error).__name__
        self.calls.append(
            Call(
                tenant=self.tenants[shot.mix.name],
                sent_ms=sent_ms,
                ended_ms=_now_ms(),
                status=seen.status,
                request_id=seen.request_id,
                error=seen.error,
                whole=seen.whole,
                maximum=shot.body.get("max_tokens"),
                prompts=shot.prompts,
                sequences=shot.sequences,
            )
        )

    async def _ask(self, session: aiohttp.ClientSession, shot: Shot, seen: "_Seen") -> None:
        secret = self.secrets[shot.mix.name, shot.key]
        async with session.post(
            self.gateways[shot.gateway] + shot.path,
            data=json.dumps({"model": self.model, **shot.body}),
            headers={"authorization": f"Bearer {secret}", "content-type": "application/json"},
        ) as answer:
            seen.status = answer.status
            identifier = answer.headers.get("x-request-id")
            seen.request_id = None if identifier is None else identifier.replace("-", "")
            self.answering[shot.gateway] += answer.status == 200
            try:
                raw = await answer.read()
            finally:
                self.answering[shot.gateway] -= answer.status == 200
        if answer.status != 200:
            seen.error = json.loads(raw)["error"]["type"]
        elif shot.body["stream"]:
            seen.whole = raw.endswith(DONE)
            seen.error = "" if seen.whole else "error event"
        else:
            seen.whole = True


@dataclass
class _Seen:
    status: int | None = None
    request_id: str | None = None
    error: str = ""
    whole: bool = False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

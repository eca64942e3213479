"""A fleet is brought to another release under load: gateways restarted one after the other behind a
balancer, migrations while the old ones serve."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from metering_run.arena import MODEL, Arena, arena
from restoring import rows, said, until

from gateway.domain.tenant import RequestClass
from gateway.migrate import downgrade, head

pytestmark = [pytest.mark.fault, pytest.mark.timeout(240)]
CLIENTS, TOKENS = 8, 60
RETRIES, FIRST_S, LONGEST_S = 2, 0.5, 8.0
"""As the OpenAI SDK does it: on a broken connection and on 408, 409, 429 and 5xx."""
LOOK_S = 0.2
BEFORE = "0018"
DONE = b"data: [DONE]\n\n"


@dataclass
class Balancer:
    """Sends requests to gateways whose `/readyz` was 200 when it last looked."""

    urls: list[str]
    ready: set[str] = field(default_factory=set)

    async def look(self, session: aiohttp.ClientSession) -> None:
        """For ever, each gateway in turn."""
        while True:
            for url in self.urls:
                try:
                    async with session.get(url + "/readyz") as answer:
                        serves = answer.status == 200
                except (aiohttp.ClientError, OSError):
                    serves = False
                (self.ready.add if serves else self.ready.discard)(url)
            await asyncio.sleep(LOOK_S)

    def choose(self) -> str:
        """One of those that serve; any where none is known to."""
        return random.choice(sorted(self.ready) or self.urls)  # noqa: S311 - no secret


@dataclass
class Streams:
    """Clients that stream one answer after the other, and what came of each."""

    balancer: Balancer
    secret: str
    whole: list[str] = field(default_factory=list)
    """Requests whose answer came to its end."""
    failed: list[str] = field(default_factory=list)
    retried: Counter[str] = field(default_factory=Counter)
    stopping: bool = False

    async def run(self, session: aiohttp.ClientSession) -> None:
        """One client's, until all are told to stop."""
        while not self.stopping:
            for attempt in range(RETRIES + 1):
                why = await self._ask(session)
                if why is None:
                    break
                self.retried[why] += 1
                if attempt < RETRIES:
                    await asyncio.sleep(min(FIRST_S * 2**attempt, LONGEST_S))
            else:
                self.failed.append(why or "")

    async def _ask(self, session: aiohttp.ClientSession) -> str | None:
        """None where it was answered to the end, else why it is to be tried again; what broke
        within an answer is a failure, which no SDK repeats."""
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": "Tell me of locks."}],
            "max_tokens": TOKENS,
            "stream": True,
        }
        headers = {"authorization": f"Bearer {self.secret}"}
        url = self.balancer.choose() + "/v1/chat/completions"
        try:
            answer = await session.post(url, data=json.dumps(body), headers=headers)
        except (aiohttp.ClientConnectionError, OSError) as error:
            return type(error).__name__
        async with answer:
            if answer.status in (408, 409, 429) or answer.status >= 500:
                return f"{answer.status} {json.loads(await answer.read())['error']['code']}"
            try:
                raw = await answer.read()
            except (aiohttp.ClientError, OSError) as error:
                raw = type(error).__name__.encode()
            if answer.status == 200 and raw.endswith(DONE):
                self.whole.append(answer.headers["x-request-id"].replace("-", ""))
            else:
                self.failed.append(raw[-200:].decode())
        return None


@asynccontextmanager
async def load(made: Arena) -> AsyncIterator[Streams]:
    """Clients that stream all the while; at the end each has its last answer."""
    streams = Streams(Balancer(list(made.gateway_urls)), made.secrets[RequestClass.INTERACTIVE])
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        looking = asyncio.create_task(streams.balancer.look(session))
        clients = [asyncio.create_task(streams.run(session)) for _ in range(CLIENTS)]
        yield streams
        streams.stopping = True
        await asyncio.gather(*clients)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def more(streams: Streams, count: int = 2 * CLIENTS) -> None:
    """Return once so many further answers are whole."""
    wanted = len(streams.whole) + count
    async with asyncio.timeout(60):
        while len(streams.whole) < wanted:  # noqa: ASYNC110 - as they come
            await asyncio.sleep(0.05)


async def all_is_told(made: Arena, streams: Streams) -> None:
    """No request failed, and each that was answered is a row, once; the books are right."""
    assert not streams.failed, (streams.failed, streams.retried)
    assert len(streams.whole) == len(set(streams.whole))
    await until(made, "SELECT sum(admitted_count - ended_count)::int FROM journal_watermark", 0)
    await until(made, "SELECT count(*)::int FROM usage_rollup_dirty", 0)
    found = await rows(made)
    ended = {name.replace("-", ""): row for name, row in found.items()}
    assert set(streams.whole) <= ended.keys()
    assert {ended[each]["outcome"] for each in streams.whole} == {"completed"}
    assert {ended[each]["output_tokens"] for each in streams.whole} == {TOKENS}
    status, usage = await said(made, "usage", "sum")
    assert (status, usage["complete"]) == (0, True)
    assert usage["items"][0]["requests"] == len(found)


async def test_gateways_one_after_the_other(tmp_path: Path) -> None:
    """Each is drained and comes back while eight clients stream: none of them notices but by a
    retry before its answer began, and no row is missing or double."""
    async with arena(tmp_path, gateways=2, workers=1) as made:
        async with load(made) as streams:
            await more(streams)
            for process in made.gateways:
                assert await process.stop() == 0
                await more(streams)
                await process.start()
                await more(streams)
        await all_is_told(made, streams)


async def test_a_migration_under_load(tmp_path: Path) -> None:
    """`weir migrate` from the revision before, with gateways that serve: nobody is refused."""
    async with arena(tmp_path, gateways=2, workers=1) as made:
        async with load(made) as streams:
            await more(streams)
            await downgrade(made.database_url, BEFORE)
            await more(streams)
            status, out = await said(made, "migrate")
            assert (status, out["from"], out["to"]) == (0, BEFORE, head())
            await more(streams)
        await all_is_told(made, streams)

"""Counting prompts on a worker's own HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from memory_ports import MemoryDirectory, MemoryFleet
from tenant_examples import a_worker

from gateway.adapters.sglang import HttpEngine
from gateway.adapters.tokenizer import WorkerTokenizer
from gateway.domain.tenant import EngineKind
from gateway.errors import Overloaded
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request

KEY = "worker-key"


class TokenizingWorker:
    """Counts words where it is asked with its key, as SGLang's `--api-key` demands."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.hold_long: asyncio.Event | None = None
        app = web.Application()
        app.router.add_post("/v1/tokenize", self.tokenize)
        self.server = TestServer(app)

    async def tokenize(self, request: web.Request) -> web.Response:
        """Words of the prompt or of all messages."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        body = await request.json()
        self.asked.append(body)
        text = body.get("prompt") or " ".join(m["content"] for m in body["messages"])
        if self.hold_long is not None and len(text) > 10_000:
            await self.hold_long.wait()
        return web.json_response({"tokens": [], "count": len(text.split()), "max_model_len": 9})


@pytest.fixture
async def worker() -> AsyncIterator[TokenizingWorker]:
    """A running one."""
    made = TokenizingWorker()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    """The pool of connections."""
    made = HttpEngine(connect_timeout_ms=500, abort_drain_ms=100)
    yield made
    await made.aclose()


def a_request(body: dict[str, object], endpoint: Endpoint = "chat") -> CompletionRequest:
    return read_request(endpoint, json.dumps({"model": "m", **body}).encode(), {})


CHAT: dict[str, object] = {"messages": [{"role": "user", "content": "one two three"}]}


def a_tokenizer(engine: HttpEngine, *workers: dict[str, object]) -> WorkerTokenizer:
    directory = MemoryDirectory(*(a_worker(f"w{i}", **w) for i, w in enumerate(workers)))
    return WorkerTokenizer(engine, MemoryFleet(directory), timeout_ms=1_000)


async def test_a_worker_counts_with_its_key(worker: TokenizingWorker, engine: HttpEngine) -> None:
    """The same template fields as the request itself, each prompt of a list on its own."""
    url = str(worker.server.make_url("")).rstrip("/")
    tokenizer = a_tokenizer(engine, {"url": url, "api_key": KEY})
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert await tokenizer.count(a_request({**CHAT, "tools": tools}), "acme") == [3]
    assert worker.asked == [{"model": "m", "tools": tools, **CHAT}]
    prompts = a_request({"prompt": ["a b", "c"]}, "completions")
    assert await tokenizer.count(prompts, "acme") == [2, 1]


async def test_a_suffix_is_counted_with_each_prompt(
    worker: TokenizingWorker, engine: HttpEngine
) -> None:
    """An engine that fills in the middle puts it after each; an empty one is none."""
    url = str(worker.server.make_url("")).rstrip("/")
    tokenizer = a_tokenizer(engine, {"url": url, "api_key": KEY})
    asked = a_request({"prompt": ["a b", "c"], "suffix": "x " * 300}, "completions")
    counts = await tokenizer.count(asked, "acme")
    assert counts is not None
    assert all(300 <= n - own <= 310 for n, own in zip(counts, (2, 1), strict=True))
    assert len(worker.asked) == 3, "the suffix itself is counted once"
    for suffix in ("", None):
        without = a_request({"prompt": "a b", "suffix": suffix}, "completions")
        assert await tokenizer.count(without, "acme") == [2]


async def test_another_worker_counts_where_one_cannot(
    worker: TokenizingWorker, engine: HttpEngine, free_port: int
) -> None:
    """Unreachable, or not SGLang's HTTP: the next is asked; with none left nobody has counted."""
    url = str(worker.server.make_url("")).rstrip("/")
    away: dict[str, object] = {"url": f"http://127.0.0.1:{free_port}"}
    plain: dict[str, object] = {"url": url, "kind": EngineKind.OPENAI}
    good: dict[str, object] = {"url": url, "api_key": KEY}
    assert await a_tokenizer(engine, away, plain, good).count(a_request(CHAT), "acme") == [3]
    assert await a_tokenizer(engine, away, plain).count(a_request(CHAT), "acme") is None
    assert (
        await a_tokenizer(engine, {"url": url, "api_key": "wrong"}).count(a_request(CHAT), "acme")
        is None
    )


async def test_a_tenants_long_prompts_wait_for_each_other_alone(
    worker: TokenizingWorker, engine: HttpEngine
) -> None:
    """INV-12: one long prompt of a tenant is counted at a time; another tenant's short one is
    counted meanwhile; what waits too long is a 503, never an uncounted admission."""
    gate = asyncio.Event()
    worker.hold_long = gate
    url = str(worker.server.make_url("")).rstrip("/")
    tokenizer = a_tokenizer(engine, {"url": url, "api_key": KEY})
    long = a_request({"messages": [{"role": "user", "content": "word " * 10_000}]})
    first = asyncio.create_task(tokenizer.count(long, "acme"))
    second = asyncio.create_task(tokenizer.count(long, "acme"))
    assert await tokenizer.count(a_request(CHAT), "globex") == [3]
    assert len(worker.asked) == 2, "the second long prompt was sent beside the first"
    for waiting in (first, second):
        with pytest.raises(Overloaded) as caught:
            await waiting
        assert caught.value.code == "no_capacity"
    gate.set()
    assert await tokenizer.count(long, "acme") == [10_000]

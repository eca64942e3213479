"""Counting prompts by asking a worker: its own tokenizer and chat template, so exactly what it
will count (SGLang's `/v1/tokenize`)."""

import asyncio
import logging
from weakref import WeakValueDictionary

import aiohttp
import msgspec

from gateway.adapters.sglang import HttpEngine
from gateway.domain.routing import eligible
from gateway.domain.tenant import EngineKind, Worker
from gateway.errors import Overloaded
from gateway.serving.ports import Fleet
from gateway.wire.request import CompletionRequest

LARGE_CHARACTERS = 32_768
_LARGE_AT_ONCE = 1
_SMALL_AT_ONCE = 16
"""Prompts of one tenant that this gateway has counted side by side. A worker counts in turn: a
tenant must not fill that queue with what its limits will refuse."""
_SUFFIX_MARKS = 8
"""What a template for filling in the middle adds: three marks, each a token of the vocabularies
that have them, and a start counted twice at most."""
_TEMPLATE_FIELDS = (
    *("tools", "tool_choice", "chat_template_kwargs", "continue_final_message"),
    "reasoning_effort",
)
"""All that an engine passes to the model's chat template beside the messages."""
_log = logging.getLogger(__name__)


class _Count(msgspec.Struct):
    count: int


class WorkerTokenizer:
    """Counts by a healthy worker of the model, within `timeout_ms`, waiting included."""

    def __init__(self, engine: HttpEngine, fleet: Fleet, *, timeout_ms: int) -> None:
        self._engine = engine
        self._fleet = fleet
        self._timeout_s = timeout_ms / 1000
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Semaphore] = (
            WeakValueDictionary()
        )

    async def count(self, request: CompletionRequest, tenant_id: str) -> list[int] | None:
        """See `gateway.serving.ports.Tokenizer`."""
        large = sum(request.prompt_characters) > LARGE_CHARACTERS
        turn = self._turns.get((tenant_id, large))
        if turn is None:
            turn = asyncio.Semaphore(_LARGE_AT_ONCE if large else _SMALL_AT_ONCE)
            self._turns[tenant_id, large] = turn
        try:
            async with asyncio.timeout(self._timeout_s), turn:
                return await self._count(request)
        except TimeoutError:
            if not eligible(self._fleet.views(request.model)):
                return None
            raise Overloaded(
                "the prompt could not be counted in time", code="no_capacity"
            ) from None

    async def _count(self, request: CompletionRequest) -> list[int] | None:
        for view in eligible(self._fleet.views(request.model)):
            if view.worker.kind is not EngineKind.SGLANG:
                continue
            try:
                counts = [await self._ask(view.worker, body) for body in _bodies(request)]
                if request.suffix is None:
                    return counts
                after = await self._ask(view.worker, _body(request, prompt=request.suffix))
                return [count + after + _SUFFIX_MARKS for count in counts]
            except (aiohttp.ClientError, ValueError, msgspec.MsgspecError) as error:
                _log.info("worker %s did not count: %s", view.worker.id, type(error).__name__)
        return None

    async def _ask(self, worker: Worker, body: bytes) -> int:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_s)
        answer = await self._engine.ask(worker, "/v1/tokenize", body=body, timeout=timeout)
        return msgspec.json.decode(answer, type=_Count).count


def _bodies(request: CompletionRequest) -> list[bytes]:
    if request.endpoint == "completions":
        return [_body(request, prompt=prompt) for prompt in request.prompts]
    forward = request.forward
    template = {name: forward[name] for name in _TEMPLATE_FIELDS if name in forward}
    return [_body(request, **template, messages=request.prompts[0])]


def _body(request: CompletionRequest, **fields: msgspec.Raw) -> bytes:
    model = msgspec.Raw(msgspec.json.encode(request.model))
    return msgspec.json.encode({"model": model, **fields})

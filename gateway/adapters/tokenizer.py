"""Counting prompts by asking a worker: its own tokenizer and chat template, so exactly what it
will count (SGLang's `/v1/tokenize`)."""

import asyncio
import logging

import aiohttp
import msgspec

from gateway.adapters.sglang import HttpEngine
from gateway.domain.routing import eligible
from gateway.domain.tenant import EngineKind, Worker
from gateway.serving.ports import Fleet
from gateway.wire.request import CompletionRequest, RawFields

_TEMPLATE_FIELDS = ("tools", "tool_choice", "chat_template_kwargs", "continue_final_message")
_log = logging.getLogger(__name__)


class _Count(msgspec.Struct):
    count: int


class WorkerTokenizer:
    """Counts by a healthy worker of the model, in `timeout_ms` or not at all."""

    def __init__(self, engine: HttpEngine, fleet: Fleet, *, timeout_ms: int) -> None:
        self._engine = engine
        self._fleet = fleet
        self._timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000)

    async def count(self, request: CompletionRequest) -> list[int] | None:
        """Tokens of each prompt, or None where no worker counted them in time."""
        for view in eligible(self._fleet.views(request.model)):
            if view.worker.kind is not EngineKind.SGLANG:
                continue
            try:
                return list(
                    await asyncio.gather(
                        *(self._ask(view.worker, body) for body in _bodies(request))
                    )
                )
            except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError) as error:
                _log.info("worker %s did not count: %s", view.worker.id, type(error).__name__)
        return None

    async def _ask(self, worker: Worker, body: bytes) -> int:
        headers = {"content-type": "application/json"}
        if worker.api_key:
            headers["authorization"] = f"Bearer {worker.api_key}"
        async with self._engine.session.post(
            worker.url + "/v1/tokenize",
            data=body,
            headers=headers,
            timeout=self._timeout,
            raise_for_status=True,
        ) as response:
            return msgspec.json.decode(await response.read(), type=_Count).count


def _bodies(request: CompletionRequest) -> list[bytes]:
    model = msgspec.Raw(msgspec.json.encode(request.model))
    fields: RawFields = {"model": model}
    if request.endpoint == "completions":
        return [msgspec.json.encode(fields | {"prompt": prompt}) for prompt in request.prompts]
    for name in _TEMPLATE_FIELDS:
        if name in request.forward:
            fields[name] = request.forward[name]
    return [msgspec.json.encode(fields | {"messages": request.prompts[0]})]

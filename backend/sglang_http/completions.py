"""Runs a planned request and writes its answer, whole or streamed."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import msgspec

from backend.sglang_http.answers import (
    DONE,
    Answer,
    ChatChoice,
    ChatChunkChoice,
    ChatDelta,
    ChatMessageOut,
    TextChoice,
    encode,
    event,
    metadata,
    wire_logprobs,
    wire_usage,
)
from backend.sglang_http.engine import Engine
from backend.sglang_http.faults import EndedEarly, FaultedStream
from backend.sglang_http.generation import Delta, Finish, Generation, TokenLogprob, Usage
from backend.sglang_http.planning import Plan
from backend.sglang_http.refusals import EngineFailure

Write = Callable[[bytes], Awaitable[None]]


class Completion:
    """One HTTP request's sequences, from submission to their end."""

    def __init__(self, plan: Plan, engine: Engine, *, chat: bool) -> None:
        """Submits all sequences. Raises Refused for a rid that is alive already."""
        self.plan = plan
        self._engine = engine
        self._chat = chat
        self._created = int(time.time())
        self._faulted = FaultedStream(plan.sequences[0].fault)
        self._generations: list[Generation] = []
        try:
            for request in plan.sequences:
                self._generations.append(engine.submit(request))
        except BaseException:
            self.abandon()
            raise

    @property
    def rid(self) -> str:
        """The answer's id: the first sequence's."""
        return self._generations[0].rid

    def abandon(self) -> None:
        """Nobody reads any more: stop whatever still runs. By rid, and so by prefix: a client that
        leaves takes along every request whose rid begins with its own, as in SGLang."""
        for generation in self._generations:
            if not generation.ended:
                self._engine.abort(generation.rid)

    async def whole(self) -> bytes:
        """The JSON answer, once everything has ended.

        Raises EngineFailure; ConnectionCut and EndedEarly where a fault asks for it.
        """
        ends: list[Finish | None] = [None] * len(self._generations)
        texts: list[list[str]] = [[] for _ in self._generations]
        logprobs: list[list[TokenLogprob]] = [[] for _ in self._generations]
        async with aclosing(self._deltas()) as deltas:
            async for index, delta in self._faulted.pass_on(deltas):
                texts[index].append(delta.text)
                logprobs[index].extend(delta.logprobs)
                ends[index] = delta.finish
        finishes = [end for end in ends if end is not None]
        total = self._total([end.usage for end in finishes])
        return encode(
            Answer(
                id=self.rid,
                object="chat.completion" if self._chat else "text_completion",
                created=self._created,
                model=self.plan.model,
                choices=self._whole_choices(finishes, ["".join(text) for text in texts], logprobs),
                usage=msgspec.UNSET if self._faulted.drops_usage else wire_usage(total),
                metadata=metadata(total.completion_tokens),
            )
        )

    async def stream(self, write: Write) -> None:
        """Write every event of the stream, errors and the closing `[DONE]` included.

        Raises ConnectionCut where a fault asks for it.
        """
        usages = [Usage(0, 0, None)] * len(self._generations)
        last_rid = self.rid
        opened: set[int] = set()
        try:
            async with aclosing(self._deltas()) as deltas:
                async for index, delta in self._faulted.pass_on(deltas):
                    last_rid = self._generations[index].rid
                    usages[index] = delta.usage
                    for payload in self._events(index, delta, first=index not in opened):
                        await write(payload)
                    opened.add(index)
        except EngineFailure as failure:
            body = msgspec.json.encode({"error": failure.event_body()})
            await write(b"data: " + body + b"\n\n")
            usages = [Usage(0, 0, 0)]
        except EndedEarly:
            await write(DONE)
            return
        if self.plan.include_usage and not self._faulted.drops_usage:
            await write(self._usage_event(last_rid, self._total(usages)))
        await write(DONE)

    def _events(self, index: int, delta: Delta, *, first: bool) -> list[bytes]:
        usage = self._usage_of(index, delta) if self.plan.continuous_usage else None
        finish = delta.finish
        if not self._chat:
            if not (delta.text or finish):
                return []
            choice = TextChoice(
                index,
                delta.text,
                finish_reason=finish.reason.value if finish else None,
                matched_stop=finish.matched_stop if finish else None,
            )
            return [self._chunk(index, [choice], usage)]
        events = []
        if first:
            role = ChatChunkChoice(index, ChatDelta(role="assistant", content=""))
            events.append(self._chunk(index, [role], None))
        if delta.text:
            content = ChatChunkChoice(
                index, ChatDelta(content=delta.text), wire_logprobs(delta.logprobs)
            )
            events.append(self._chunk(index, [content], usage))
        if finish is not None:
            end = ChatChunkChoice(
                index,
                ChatDelta(),
                finish_reason=finish.reason.value,
                matched_stop=finish.matched_stop,
            )
            events.append(self._chunk(index, [end], None))
        return events

    def _chunk(
        self, index: int, choices: list[ChatChunkChoice] | list[TextChoice], usage: Usage | None
    ) -> bytes:
        return event(
            Answer(
                id=self._generations[index].rid,
                object="chat.completion.chunk" if self._chat else "text_completion",
                created=self._created,
                model=self.plan.model,
                choices=choices,
                usage=msgspec.UNSET if usage is None else wire_usage(usage),
            )
        )

    def _usage_event(self, rid: str, usage: Usage) -> bytes:
        return event(
            Answer(
                id=rid,
                object="chat.completion.chunk" if self._chat else "text_completion",
                created=self._created,
                model=self.plan.model,
                choices=list[ChatChunkChoice](),
                usage=wire_usage(usage, closing_text=not self._chat),
            )
        )

    def _usage_of(self, index: int, delta: Delta) -> Usage:
        """Usage on a chunk. A text completion shows no cached tokens there while none were."""
        if self._chat or delta.usage.cached_tokens:
            return delta.usage
        return Usage(delta.usage.prompt_tokens, delta.usage.completion_tokens, None)

    def _whole_choices(
        self, finishes: list[Finish], texts: list[str], logprobs: list[list[TokenLogprob]]
    ) -> list[ChatChoice] | list[TextChoice]:
        if self._chat:
            return [
                ChatChoice(
                    index,
                    ChatMessageOut("assistant", texts[index]),
                    wire_logprobs(logprobs[index]),
                    finish.reason.value,
                    finish.matched_stop,
                )
                for index, finish in enumerate(finishes)
            ]
        return [
            TextChoice(
                index,
                texts[index],
                finish_reason=finish.reason.value,
                matched_stop=finish.matched_stop,
            )
            for index, finish in enumerate(finishes)
        ]

    def _total(self, usages: list[Usage]) -> Usage:
        """Usage of the whole request: each prompt once, every sequence's output."""
        firsts = usages[:: max(1, len(usages) // self.plan.prompts)]
        known = [usage.cached_tokens for usage in firsts if usage.cached_tokens is not None]
        return Usage(
            prompt_tokens=sum(usage.prompt_tokens for usage in firsts),
            completion_tokens=sum(usage.completion_tokens for usage in usages),
            cached_tokens=sum(known) if len(known) == len(firsts) else None,
        )

    async def _deltas(self) -> AsyncGenerator[tuple[int, Delta]]:
        """What any sequence generates, as it comes, until all have ended."""
        if len(self._generations) == 1:
            while True:
                delta = await self._generations[0].take()
                yield 0, delta
                if delta.finish is not None:
                    return
        takers = {
            asyncio.ensure_future(generation.take()): index
            for index, generation in enumerate(self._generations)
        }
        try:
            while takers:
                done, _ = await asyncio.wait(takers, return_when=asyncio.FIRST_COMPLETED)
                for taker in done:
                    index = takers.pop(taker)
                    delta = taker.result()
                    if delta.finish is None:
                        again = asyncio.ensure_future(self._generations[index].take())
                        takers[again] = index
                    yield index, delta
        finally:
            for taker in takers:
                taker.cancel()

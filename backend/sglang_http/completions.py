"""Runs a planned request and writes its answer, whole or streamed."""

import time
from collections.abc import Sequence
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
from backend.sglang_http.connection import Connection, ContentWriter
from backend.sglang_http.engine import Engine
from backend.sglang_http.faults import EndedEarly
from backend.sglang_http.generation import Delta, DirectReader, Finish, TokenLogprob, Usage
from backend.sglang_http.planning import Plan
from backend.sglang_http.refusals import EngineFailure, InputTooLong, LateRefusal
from backend.sglang_http.running import RunningRequest, Write


class Completion(RunningRequest):
    """A request whose answer has OpenAI's shape."""

    def __init__(self, plan: Plan, engine: Engine, *, chat: bool) -> None:
        """Submits all sequences. Raises Refused for a rid that is alive already."""
        super().__init__(plan, engine)
        self._chat = chat
        self._created = int(time.time())

    async def whole(self) -> bytes:
        """The JSON answer, once everything has ended.

        Raises EngineFailure; ConnectionCut and EndedEarly where a fault asks for it.
        """
        ends: list[Finish | None] = [None] * len(self.generations)
        texts: list[list[str]] = [[] for _ in self.generations]
        logprobs: list[list[TokenLogprob]] = [[] for _ in self.generations]
        async with aclosing(self.deltas()) as deltas:
            async for index, delta in self.faulted.pass_on(deltas):
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
                usage=msgspec.UNSET if self.faulted.drops_usage else wire_usage(total),
                # Of several choices SGLang shows the first one's.
                metadata=metadata(finishes[0].usage.completion_tokens),
            )
        )

    async def stream(self, write: Write, connection: Connection | None = None) -> None:
        """Write every event of the stream, errors and the closing `[DONE]` included; the texts in
        between straight to `connection`, where there is one.

        Raises ConnectionCut where a fault asks for it.
        """
        usages = [Usage(0, 0, None)] * len(self.generations)
        last_rid = self.rid
        opened: set[int] = set()
        ends: list[tuple[int, Finish]] = []
        try:
            async with aclosing(self.deltas(self._direct(connection))) as deltas:
                async for index, delta in self.faulted.pass_on(deltas):
                    last_rid = self.generations[index].rid
                    usages[index] = delta.usage
                    for payload in self._events(index, delta, first=index not in opened):
                        await write(payload)
                    opened.add(index)
                    if self._chat and delta.finish is not None:
                        ends.append((index, delta.finish))
            for index, finish in ends:
                await write(self._end(index, finish, last_rid))
        except EngineFailure as failure:
            body = msgspec.json.encode({"error": failure.event_body()})
            await write(b"data: " + body + b"\n\n")
            usages = self.counted()
        except EndedEarly:
            await write(DONE)
            return
        if self.plan.include_usage and not self.faulted.drops_usage:
            await write(self._usage_event(last_rid, self._total(usages)))
        await write(DONE)

    def _direct(self, connection: Connection | None) -> DirectReader | None:
        """What writes the texts of a lone sequence, where nothing has to look at them."""
        if connection is None or self.faulted.strikes or len(self.generations) > 1:
            return None
        if not self._chat:
            # Its last text and its finish are one event.
            return None
        if self.plan.sequences[0].sampling.top_logprobs is not None:
            return None
        return ContentWriter(
            connection,
            self.generations[0],
            lambda text: self._chunk(self.rid, [self._content(text)], None),
            continuous_usage=self.plan.continuous_usage,
        )

    @staticmethod
    def _content(
        text: str, logprobs: Sequence[TokenLogprob] = (), *, index: int = 0
    ) -> ChatChunkChoice:
        return ChatChunkChoice(index, ChatDelta(content=text), wire_logprobs(logprobs))

    def _events(self, index: int, delta: Delta, *, first: bool) -> list[bytes]:
        rid = self.generations[index].rid
        usage = delta.usage if self.plan.continuous_usage else None
        finish = delta.finish
        if not self._chat:
            if usage is not None:
                # What was cached a text completion says at its end alone.
                usage = Usage(usage.prompt_tokens, usage.completion_tokens, None)
            if not (delta.text or finish):
                return []
            choice = TextChoice(
                index,
                delta.text,
                finish_reason=finish.reason.value if finish else None,
                matched_stop=finish.matched_stop if finish else None,
            )
            return [self._chunk(rid, [choice], usage)]
        events = []
        if first:
            role = ChatChunkChoice(index, ChatDelta(role="assistant", content=""))
            events.append(self._chunk(rid, [role], None))
        if delta.text:
            content = self._content(delta.text, delta.logprobs, index=index)
            events.append(self._chunk(rid, [content], usage))
        return events

    def _end(self, index: int, finish: Finish, rid: str) -> bytes:
        """The finish of a chat's choice: after all choices' content, under the last one's id."""
        reason, matched = finish.reason.value, finish.matched_stop
        end = ChatChunkChoice(index, ChatDelta(), finish_reason=reason, matched_stop=matched)
        return self._chunk(rid, [end], None)

    def _chunk(
        self, rid: str, choices: Sequence[ChatChunkChoice | TextChoice], usage: Usage | None
    ) -> bytes:
        return event(
            Answer(
                id=rid,
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
                choices=[],
                usage=wire_usage(usage, closing_text=not self._chat),
            )
        )

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
        completion_tokens = sum(usage.completion_tokens for usage in usages)
        completion_tokens = max(0, completion_tokens + self.faulted.overcount)
        known = [usage.cached_tokens for usage in firsts if usage.cached_tokens is not None]
        return Usage(
            prompt_tokens=sum(usage.prompt_tokens for usage in firsts),
            completion_tokens=completion_tokens,
            cached_tokens=sum(known) if len(known) == len(firsts) else None,
        )


def late_refusal(refused: InputTooLong, asked: LateRefusal, *, chat: bool) -> list[bytes]:
    """The events of a stream whose prompt the scheduler refused, its usage as odd as SGLang's."""
    error = EngineFailure(refused.message, status=refused.status, event_kind="BAD_REQUEST")
    events = [b"data: " + msgspec.json.encode({"error": error.event_body()}) + b"\n\n"]
    if asked.include_usage:
        answer = Answer(
            id=asked.rid,
            object="chat.completion.chunk" if chat else "text_completion",
            created=int(time.time()),
            model=asked.model,
            choices=[],
            usage=wire_usage(Usage(1, 1, 0), closing_text=not chat),
        )
        events.append(event(answer))
    return [*events, DONE]

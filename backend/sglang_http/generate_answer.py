"""SGLang's own answers to POST /generate: text, ids, and what became of them."""

import time
from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from backend.sglang_http.answers import DONE
from backend.sglang_http.connection import Connection
from backend.sglang_http.faults import EndedEarly
from backend.sglang_http.generation import Finish, FinishReason, Generation, Usage
from backend.sglang_http.refusals import EngineFailure
from backend.sglang_http.running import RunningRequest, Write


class GenerateAnswer(RunningRequest):
    """A request whose answer has the shape of SGLang's own."""

    async def whole(self) -> bytes:
        """The JSON answer once everything has ended. Raises as `Completion.whole`."""
        texts = [""] * len(self.generations)
        answers: list[dict[str, object]] = [{} for _ in self.generations]
        async with aclosing(self.deltas()) as deltas:
            async for index, delta in self.faulted.pass_on(deltas):
                texts[index] += delta.text
                if delta.finish is not None:
                    answers[index] = self._answer(index, texts[index], delta.finish)
        return msgspec.json.encode(answers if self.plan.listed else answers[0])

    async def stream(self, write: Write, connection: Connection | None = None) -> None:
        """Write every event; each repeats what came before it. Raises as `Completion.stream`."""
        del connection
        texts = [""] * len(self.generations)
        try:
            async with aclosing(self.deltas()) as deltas:
                async for index, delta in self.faulted.pass_on(deltas):
                    texts[index] += delta.text
                    await write(_event(self._answer(index, texts[index], delta.finish)))
        except EngineFailure as failure:
            await write(_event(_failed(self.generations[0], failure)))
        except EndedEarly:
            pass
        await write(DONE)

    def _answer(self, index: int, text: str, finish: Finish | None) -> dict[str, object]:
        generation = self.generations[index]
        usage = generation.usage if finish is None else finish.usage
        count = usage.completion_tokens + (self.faulted.overcount if finish else 0)
        ids: Sequence[int] = ()
        if generation.output_ids is not None:
            ids = generation.output_ids(usage.completion_tokens)
        told = _meta_info(generation, usage, count, finish)
        answer: dict[str, object] = {"text": text, "output_ids": list(ids), "meta_info": told}
        if self.plan.listed and self.plan.stream:
            answer["index"] = index
        return answer


def _event(answer: dict[str, object]) -> bytes:
    return b"data: " + msgspec.json.encode(answer) + b"\n\n"


def _meta_info(
    generation: Generation, usage: Usage, count: int, finish: Finish | None
) -> dict[str, object]:
    course, cached = generation.course, usage.cached_tokens
    told: dict[str, object] = {"id": generation.rid, "finish_reason": _reason(finish, generation)}
    ran = course.started_ns is not None
    if ran:
        told |= {"prompt_tokens": usage.prompt_tokens}
    told |= {"weight_version": "default", "num_retractions": course.retractions}
    if ran:
        told |= {
            "storage_prefetch_wait": 0.0,
            "storage_staging_wait": 0.0,
            "forward_entry_time": _seconds(course.started_ns),
            "prefill_finished_time": _seconds(course.first_token_ns),
            "queue_time": course.queue_s,
        }
    told |= {"reasoning_tokens": 0, "completion_tokens": count}
    if ran:
        told |= {"cached_tokens": cached}
    if finish is not None:
        told |= {"weight_versions": [{"version": "default", "start": 0, "end": count}]}
    told |= {
        "cached_tokens_details": {"device": cached, "host": 0} if cached else None,
        "dp_rank": None,
    }
    if finish is not None:
        decoding_s = course.decoding_s
        told |= {
            "e2e_latency": course.end_to_end_s,
            "request_received_ts": _seconds(course.queued_ns),
            "first_token_latency": course.first_token_s,
            "api_server_dispatch_finish_ts": _seconds(course.entered_ns or course.queued_ns),
            "request_finished_ts": _seconds(course.ended_ns),
            "response_sent_to_client_ts": time.time(),
        }
        if count > 1 and decoding_s:
            told["decode_throughput"] = (count - 1) / decoding_s
    return told


def _reason(finish: Finish | None, generation: Generation) -> dict[str, object] | None:
    if finish is None:
        return None
    if finish.reason is FinishReason.LENGTH:
        return {"type": "length", "length": finish.usage.completion_tokens}
    if finish.reason is FinishReason.STOP:
        return {"type": "stop", "matched": finish.matched_stop}
    if generation.course.started_ns is None:
        return {"type": "abort", "message": "Abort in waiting queue"}
    return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}


def late_refusal(message: str, rid: str) -> list[bytes]:
    """The events of a stream whose prompt the scheduler refused: SGLang has it answer a prompt of
    one token with one token."""
    generation = Generation(rid, 1)
    course, usage = generation.course, Usage(1, 1, 0)
    course.started_ns = course.first_token_ns = course.ended_ns = time.time_ns()
    told = _meta_info(generation, usage, 1, Finish(FinishReason.ABORT, usage))
    refused = {"status_code": 400, "err_type": "BadRequestError"}
    told["finish_reason"] = {"type": "abort", "message": message, **refused}
    return [_event({"text": "", "output_ids": [0], "meta_info": told}), DONE]


def _failed(generation: Generation, failure: EngineFailure) -> dict[str, object]:
    reason = {"type": "abort", "status_code": failure.status, "message": failure.message}
    count = generation.completion_tokens
    told = {
        "id": generation.rid,
        "finish_reason": reason,
        "weight_version": "default",
        "e2e_latency": generation.course.end_to_end_s,
        "weight_versions": [{"version": "default", "start": 0, "end": count}],
        "completion_tokens": count,
        "response_sent_to_client_ts": time.time(),
    }
    return {"text": "", "output_ids": [], "meta_info": told}


def _seconds(instant_ns: int | None) -> float | None:
    return None if instant_ns is None else instant_ns / 1e9

"""The sequences an engine holds now, by rid, and how each ends: once, and in the ledger."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.sglang_http.engine import GenerationRequest
from backend.sglang_http.generation import Finish, FinishReason, Generation, Usage
from backend.sglang_http.ledger import Ledger, now_ms
from backend.sglang_http.refusals import EngineFailure, Refused
from backend.sglang_http.stopping import StopScanner


@dataclass(slots=True, eq=False)
class LiveSequence:
    """One submitted request. `started_at_ms` is None until its prompt step begins."""

    request: GenerationRequest
    generation: Generation
    scanner: StopScanner
    queued_at_ms: int = field(default_factory=now_ms)
    started_at_ms: int | None = None
    running_at_start: int | None = None

    @property
    def held_tokens(self) -> int:
        """KV tokens it occupies: its prompt and what it has generated."""
        return self.generation.prompt_tokens + self.generation.completion_tokens


class LiveSequences:
    """All live sequences of an engine."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_rid: dict[str, LiveSequence] = {}

    def __iter__(self) -> Iterator[LiveSequence]:
        return iter(list(self._by_rid.values()))

    def add(self, request: GenerationRequest) -> LiveSequence:
        """A new sequence. Raises Refused where its rid is alive already."""
        if request.rid in self._by_rid:
            raise Refused(f"Duplicate request ID detected: {request.rid}")
        generation = Generation(request.rid, len(request.prompt.tokens))
        sequence = LiveSequence(request, generation, StopScanner(request.sampling.stop))
        self._by_rid[request.rid] = sequence
        return sequence

    def matching(self, rid: str, *, abort_all: bool) -> list[LiveSequence]:
        """Those whose rid starts with `rid`, which is how SGLang's scheduler aborts. An empty rid
        matches none."""
        if abort_all:
            return list(self._by_rid.values())
        if not rid:
            return []
        return [live for known, live in self._by_rid.items() if known.startswith(rid)]

    def start(self, sequence: LiveSequence) -> None:
        """Its prompt step begins."""
        sequence.started_at_ms = now_ms()
        sequence.running_at_start = self._ledger.started()

    def end(
        self,
        sequence: LiveSequence,
        reason: FinishReason,
        *,
        matched_stop: str | int | None = None,
        usage: Usage | None = None,
    ) -> None:
        """It ended, with the usage counted so far or the one that the engine reports. Only the
        first end of a sequence counts."""
        if sequence.generation.ended:
            return
        if usage is None:
            # Nothing was computed for what never left the queue.
            started = sequence.started_at_ms is not None
            usage = sequence.generation.usage if started else Usage(0, 0, 0)
        self._forget(sequence, usage, reason)
        sequence.generation.finish(Finish(reason, usage, matched_stop))

    def fail(self, sequence: LiveSequence, failure: EngineFailure) -> None:
        """The engine broke on it."""
        if sequence.generation.ended:
            return
        self._forget(sequence, sequence.generation.usage, None)
        sequence.generation.fail(failure)

    def reject(self, sequence: LiveSequence, failure: EngineFailure) -> None:
        """It was never taken: no entry in the ledger."""
        del self._by_rid[sequence.request.rid]
        sequence.generation.fail(failure)

    def _forget(self, sequence: LiveSequence, usage: Usage, reason: FinishReason | None) -> None:
        del self._by_rid[sequence.request.rid]
        self._ledger.record(
            sequence.request.rid,
            usage,
            reason,
            queued_at_ms=sequence.queued_at_ms,
            started_at_ms=sequence.started_at_ms,
            running_at_start=sequence.running_at_start,
        )

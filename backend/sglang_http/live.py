"""The sequences an engine holds now, by rid, and how each ends: once, and in the ledger."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import time_ns

from backend.sglang_http.engine import GenerationRequest
from backend.sglang_http.generation import Finish, FinishReason, Generation, Usage
from backend.sglang_http.latencies import Latencies
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.refusals import EngineFailure, Refused
from backend.sglang_http.stopping import StopScanner

MS = 1_000_000
"""Nanoseconds in a millisecond."""


@dataclass(slots=True, eq=False)
class LiveSequence:
    """One submitted request."""

    request: GenerationRequest
    generation: Generation
    scanner: StopScanner
    running_at_start: int | None = None
    running: bool = False
    """The ledger counts it among those that run."""
    abort_asked: bool = False

    @property
    def held_tokens(self) -> int:
        """KV tokens it occupies: its prompt and what it has generated."""
        return self.generation.prompt_tokens + self.generation.completion_tokens


class LiveSequences:
    """All live sequences of an engine."""

    def __init__(
        self, ledger: Ledger, latencies: Latencies | None = None, *, interval: int = 1
    ) -> None:
        """`interval`: a stream shows its text once so many tokens are unread."""
        self._ledger = ledger
        self._latencies = Latencies() if latencies is None else latencies
        self._interval = interval
        self._by_rid: dict[str, LiveSequence] = {}

    def __len__(self) -> int:
        return len(self._by_rid)

    def __iter__(self) -> Iterator[LiveSequence]:
        return iter(list(self._by_rid.values()))

    def add(self, request: GenerationRequest) -> LiveSequence:
        """A new sequence. Raises Refused where its rid is alive already."""
        if request.rid in self._by_rid:
            raise Refused(f"Duplicate request ID detected: {request.rid}")
        interval = self._interval if request.stream else 1
        generation = Generation(request.rid, len(request.prompt.tokens), interval=interval)
        sequence = LiveSequence(request, generation, StopScanner(request.sampling.stop))
        self._by_rid[request.rid] = sequence
        return sequence

    def matching(self, rid: str, *, abort_all: bool) -> list[LiveSequence]:
        """Those whose rid starts with `rid`, which is how SGLang's scheduler aborts; none where no
        live one is called just so, for then SGLang's front does not ask it. Whom it asks about is
        counted: a live rid once, whoever goes with it not, and all together as one."""
        if abort_all:
            self._ledger.aborts += 1
            return list(self._by_rid.values())
        named = self._by_rid.get(rid)
        if named is None:
            return []
        if not (named.abort_asked or named.request.health):
            self._ledger.aborts += 1
        named.abort_asked = True
        return [live for known, live in self._by_rid.items() if known.startswith(rid)]

    def start(self, sequence: LiveSequence, at_ns: int | None = None) -> None:
        """Its prompt step begins, or began then (Unix nanoseconds)."""
        sequence.generation.course.started_ns = time_ns() if at_ns is None else at_ns
        sequence.running_at_start = self.resume(sequence)

    def pause(self, sequence: LiveSequence) -> None:
        """It runs no more, for now or for good. Nothing where that was so before."""
        if sequence.running:
            sequence.running = False
            self._ledger.left()

    def resume(self, sequence: LiveSequence) -> int:
        """It runs again. Returns how many run now."""
        sequence.running = True
        return self._ledger.started()

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
            started = sequence.generation.course.started_ns is not None
            usage = sequence.generation.usage if started else Usage(0, 0, 0)
        sequence.generation.finish(Finish(reason, usage, matched_stop))
        self._forget(sequence, usage, reason)

    def fail(self, sequence: LiveSequence, failure: EngineFailure) -> None:
        """The engine broke on it."""
        if sequence.generation.ended:
            return
        sequence.generation.fail(failure)
        self._forget(sequence, sequence.generation.usage, None)

    def reject(self, sequence: LiveSequence, failure: EngineFailure) -> None:
        """It was never taken: no entry in the ledger."""
        del self._by_rid[sequence.request.rid]
        sequence.generation.fail(failure)

    def _forget(self, sequence: LiveSequence, usage: Usage, reason: FinishReason | None) -> None:
        del self._by_rid[sequence.request.rid]
        course = sequence.generation.course
        if not sequence.request.health:
            self._latencies.note(course)
        self._ledger.record(
            sequence.request.rid,
            usage,
            reason,
            queued_at_ms=course.queued_ns // MS,
            started_at_ms=_ms(course.started_ns),
            running_at_start=sequence.running_at_start,
            first_token_ms=_ms(course.first_token_ns),
            priority=sequence.request.priority,
            retractions=course.retractions,
            health=sequence.request.health,
            stream=sequence.request.stream,
        )


def _ms(instant_ns: int | None) -> int | None:
    return None if instant_ns is None else instant_ns // MS

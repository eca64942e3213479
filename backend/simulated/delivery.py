"""What the scheduler generated, on its way to who reads it; faults hold it up here."""

import asyncio
from collections.abc import Iterable

from backend.sglang_http.generation import FinishReason
from backend.sglang_http.live import LiveSequences
from backend.sglang_http.refusals import EngineFailure, out_of_memory, queue_full
from backend.sglang_http.throughput import Throughput
from backend.simulated import vocabulary
from backend.simulated.replica import Replica
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.sequence import SimulatedSequence


class Delivery:
    """Every sequence in the queue or after it, by its live one."""

    def __init__(
        self,
        replica: Replica,
        live: LiveSequences,
        throughput: Throughput,
    ) -> None:
        self._replica = replica
        self._live = live
        self._throughput = throughput
        self._sequences: dict[int, SimulatedSequence] = {}
        self.waiting: dict[SimulatedRequest, SimulatedSequence] = {}
        """Those that wait for a place in the batch, or for another one."""
        self.lingering: set[SimulatedSequence] = set()
        """Those that have left the scheduler and that a fault lets look as if they ran."""

    def add(self, sequence: SimulatedSequence) -> None:
        """It entered the queue."""
        self._sequences[id(sequence.live)] = sequence
        self.waiting[sequence.request] = sequence

    def of(self, lives: Iterable[int]) -> list[SimulatedSequence]:
        """Those whose live sequences have these identities."""
        found = (self._sequences.get(live) for live in lives)
        return [sequence for sequence in found if sequence is not None]

    def reject(self, sequence: SimulatedSequence, failure: EngineFailure) -> None:
        """It lost its place in the queue, or never had one. What ran before is a failure, with all
        that it generated; of the rest there is nothing to account for."""
        if sequence.live.generation.course.started_ns is not None:
            if self._forget(sequence):
                self._live.fail(sequence.live, failure)
            return
        self._sequences.pop(id(sequence.live), None)
        self.waiting.pop(sequence.request, None)
        self._live.reject(sequence.live, failure)

    def abort(self, sequence: SimulatedSequence, now_ms: float, *, at_once: bool) -> None:
        """End it: with the step in flight where it is in that, unless `at_once`."""
        sequence.aborting = True
        if self._replica.abort(sequence.request, now_ms) or at_once:
            self._end(sequence, EndReason.ABORT, None)

    def end_aborted(self) -> None:
        """Those that were to leave with the step in flight have ended, whenever it may."""
        for sequence in list(self._sequences.values()):
            if sequence.aborting:
                self._end(sequence, EndReason.ABORT, None)

    def step(
        self,
        generated: list[SimulatedRequest],
        ended: list[tuple[SimulatedRequest, EndReason]],
        now_ms: float,
    ) -> None:
        """A step ended: one more token for each of `generated`."""
        self._throughput.add(len(generated))
        for request in generated:
            sequence = request.owner
            if type(sequence) is not SimulatedSequence:
                continue
            if sequence.plain:
                text = sequence.next_text()
                sequence.live.generation.push(text or "", 1)
            else:
                sequence.held += 1
                self._show(sequence, now_ms)
        for request, reason in ended:
            sequence = request.owner
            if type(sequence) is SimulatedSequence:
                self._finish(sequence, reason)

    def _finish(self, sequence: SimulatedSequence, reason: EndReason) -> None:
        """The scheduler is through with it; what is held back is still to come."""
        self.waiting.pop(sequence.request, None)
        if sequence.held and not sequence.aborting:
            sequence.ending = (reason, None)
            self.lingering.add(sequence)
        else:
            self._end(sequence, reason, None)

    def _show(self, sequence: SimulatedSequence, now_ms: float) -> None:
        """Let out what is held, as far as its fault lets it."""
        while sequence.held and not sequence.live.generation.ended:
            fault = sequence.struck()
            if fault is None:
                self._let_out(sequence, now_ms)
                continue
            if fault.kind == "stall":
                self._stall(sequence, now_ms)
            elif sequence.timer is None:
                loop = asyncio.get_running_loop()
                delay_s = fault.delay_ms / 1000
                sequence.timer = loop.call_later(delay_s, self._show_late, sequence, now_ms)
            return
        if sequence.ending is not None:
            self._end(sequence, *sequence.ending)

    def _show_late(self, sequence: SimulatedSequence, now_ms: float) -> None:
        sequence.timer = None
        if not sequence.live.generation.ended:
            self._let_out(sequence, now_ms)
            self._show(sequence, now_ms)

    def _stall(self, sequence: SimulatedSequence, now_ms: float) -> None:
        """It generates no more and does not end. Its memory is freed, unlike a real one's."""
        if not sequence.stalled:
            sequence.stalled = True
            self.lingering.add(sequence)
            self._leave(sequence, now_ms)

    def _let_out(self, sequence: SimulatedSequence, now_ms: float) -> None:
        live = sequence.live
        sequence.held -= 1
        text = sequence.next_text()
        if text is None:
            live.generation.push(live.scanner.flush(), 1)
            return
        shown, matched = live.scanner.push(text)
        live.generation.push(shown, 1)
        if matched is not None:
            sequence.held = 0
            self._leave(sequence, now_ms)
            self._end(sequence, EndReason.STOP, matched)

    def _leave(self, sequence: SimulatedSequence, now_ms: float) -> None:
        """Out of the scheduler: between steps at once, else with the one in flight."""
        self.waiting.pop(sequence.request, None)
        try:
            self._replica.stop(sequence.request, now_ms)
        except RuntimeError:
            self._replica.abort(sequence.request, now_ms)

    def _end(self, sequence: SimulatedSequence, reason: EndReason, matched: str | None) -> None:
        live = sequence.live
        if not self._forget(sequence):
            return
        if reason is EndReason.OUT_OF_MEMORY:
            self._live.fail(live, out_of_memory())
        elif reason is EndReason.ABORT and not sequence.aborting:
            # It had lost its place in the batch, and there was none in the queue.
            self._live.fail(live, queue_full())
        elif reason is EndReason.STOP:
            end = vocabulary.END_OF_TEXT_ID if matched is None else matched
            self._live.end(live, FinishReason.STOP, matched_stop=end)
        elif reason is EndReason.LENGTH:
            live.generation.push(live.scanner.flush(), 0)
            self._live.end(live, FinishReason.LENGTH)
        else:
            self._live.end(live, FinishReason.ABORT)

    def _forget(self, sequence: SimulatedSequence) -> bool:
        """It holds nothing here any more. False where that was so before."""
        live = sequence.live
        if self._sequences.pop(id(live), None) is None:
            return False
        self.waiting.pop(sequence.request, None)
        if sequence.timer is not None:
            sequence.timer.cancel()
        self.lingering.discard(sequence)
        live.generation.course.retractions = sequence.request.retractions
        self._live.pause(live)
        return True

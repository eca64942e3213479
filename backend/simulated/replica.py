"""A simulated replica: SGLang's scheduler over a model of time.

Pure and synchronous. The driver says what time it is, in simulated milliseconds, and runs the
steps: `begin_step`, wait `duration_ms`, `end_step`. The same calls give the same answers.
"""

from collections.abc import Sequence

from backend.simulated.admission import Piece
from backend.simulated.batch import DecodeBatch, end_reason
from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.load import ReplicaLoad, ReplicaTotals
from backend.simulated.place import Place
from backend.simulated.profiles import StepTimes
from backend.simulated.report import Report
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.retraction import NewTokenRatio, retract
from backend.simulated.selection import Selection
from backend.simulated.step import Step, StepEnd, decode_step, prefill_step
from backend.simulated.waiting import WaitingQueue


class Replica:
    """One engine with its KV pool, prefix cache, queue and batch."""

    def __init__(self, step_times: StepTimes, flags: SchedulerFlags) -> None:
        self._times = step_times
        self._flags = flags
        self._pool = KvPool(
            flags.max_total_tokens,
            flags.page_size,
            cached=not flags.disable_radix_cache,
            eviction_policy=flags.radix_eviction_policy,
        )
        self._waiting = WaitingQueue(flags, self._pool)
        self._batch = DecodeBatch(self._pool)
        self._ratio = NewTokenRatio(flags.schedule_conservativeness)
        self._selection = Selection(flags, self._pool, self._waiting, self._batch, self._ratio)
        self._places: dict[SimulatedRequest, Place] = {}
        self._step: Step | None = None
        self._pieces: list[Piece] = []
        self._decides_ended: list[tuple[SimulatedRequest, EndReason]] = []
        self._now_ms = 0.0
        self._totals = ReplicaTotals()
        self._report = Report(self._selection, self._totals, flags.load_snapshot_publish_interval)

    @property
    def has_work(self) -> bool:
        """Whether anything waits, runs or is yet to be reported."""
        return bool(self._places or self._decides_ended)

    @property
    def lost_places(self) -> Sequence[SimulatedRequest]:
        """Who lost their place in the batch as the last step began; some may have one again."""
        return self._selection.lost

    @property
    def published(self) -> ReplicaLoad:
        """The last snapshot: taken at the end of each prefill step, of every so many decode steps
        (`load_snapshot_publish_interval`), and when the replica falls idle."""
        return self._report.published

    @property
    def totals(self) -> ReplicaTotals:
        """The counters; the replica goes on counting in them."""
        self._totals.evicted_tokens = self._pool.evicted_tokens
        return self._totals

    def load(self) -> ReplicaLoad:
        """The load now."""
        return self._report.load(sum(1 for piece in self._pieces if piece.completes))

    def submit(self, request: SimulatedRequest, now_ms: float) -> SimulatedRequest | None:
        """Queue it. Returns the one for whom there is no room in the queue: this one, or under
        priorities a less preferred one that waited; it has left. Raises ValueError for an empty
        prompt."""
        if not request.prompt:
            raise ValueError("a prompt has at least one token")
        self._now_ms = now_ms
        request.arrived_ms = now_ms
        self._totals.requests += 1
        place = Place(request, self._flags)
        refused = self._waiting.enter(place)
        if refused is not place:
            self._places[request] = place
        if refused is None:
            return None
        self._places.pop(refused.request, None)
        self._totals.refused += 1
        return refused.request

    def abort(self, request: SimulatedRequest, now_ms: float) -> bool:
        """End it. True: it has left, or had before. False: it leaves with the step in flight, in
        whose `ended` it is."""
        self._now_ms = now_ms
        place = self._places.get(request)
        if place is None:
            return all(request is not ended for ended, _ in self._decides_ended)
        if place.waiting:
            self._waiting.remove(place)
        elif self._step is not None:
            place.aborting = True
            return False
        else:
            self._leave_between_steps(place)
        self._totals.aborted += 1
        del self._places[request]
        self._settle_if_idle()
        return True

    def stop(self, request: SimulatedRequest, now_ms: float) -> None:
        """A stop string stands in what it generated: it ends and leaves, between two steps. One
        that has left already is none of its business. Raises RuntimeError in a step."""
        if self._step is not None:
            raise RuntimeError("a sequence is stopped between steps")
        self._now_ms = now_ms
        place = self._places.pop(request, None)
        if place is None:
            return
        if place.waiting:
            self._waiting.remove(place)
        else:
            self._leave_between_steps(place)
        self._settle_if_idle()

    def flush_cache(self) -> bool:
        """Empty the prefix cache; False, and nothing done, while anything waits or runs."""
        if self.has_work:
            return False
        self._pool.cache.clear()
        return True

    def begin_step(self, now_ms: float) -> Step | None:
        """Decide what runs next and begin it; None if there is nothing to run. Raises
        RuntimeError while a step is in flight."""
        if self._step is not None:
            raise RuntimeError("a step is in flight")
        self._now_ms = now_ms
        self._selection.lost.clear()
        step = self._begin_prefill()
        if step is None and self._batch:
            step = self._begin_decode()
            if step is None:
                step = self._begin_prefill()
        if step is None and self._decides_ended:
            step = Step("decode", 0.0, 0, 0, 0)
        self._step = step
        return step

    def end_step(self, now_ms: float) -> StepEnd:
        """What came of the step in flight. Raises RuntimeError if there is none."""
        step = self._step
        if step is None:
            raise RuntimeError("no step is in flight")
        self._now_ms = now_ms
        self._step = None
        end = StepEnd(ended=self._decides_ended)
        self._decides_ended = []
        pieces, self._pieces = self._pieces, []
        cut = self._selection.chunked is not None
        if pieces and (step.sequences or not self._batch or cut):
            # SGLang forgets that no one fits when the batch becomes another one by this.
            self._selection.left()
        if step.sequences:
            self._end_decode(end)
        for piece in pieces:
            self._end_piece(piece, end, now_ms)
        self._leave_aborted(end)
        if step.sequences or pieces:
            self._report.step_ended(step, len(end.generated), now_ms)
        self._settle_if_idle()
        return end

    def _begin_prefill(self) -> Step | None:
        chosen = self._selection.next_prefill()
        for place in self._selection.take_refused():
            self._refuse_again(place)
        for place in self._selection.take_impossible():
            self._out_of_memory(place)
        self._totals.preempted_requests += self._selection.take_preempted()
        if chosen is None:
            return None
        for piece in chosen.pieces:
            self._start(piece)
        self._pieces = chosen.pieces
        self._report.prefilled(self._now_ms, chosen)
        beside = 0
        if self._flags.enable_mixed_chunk and self._batch:
            tokens = self._batch.next_step_tokens()
            if self._pool.make_free(tokens):
                self._pool.take(tokens)
                beside = len(self._batch)
        context = self._batch.context_tokens if beside else 0
        return prefill_step(self._times, chosen.pieces, beside, context)

    def _start(self, piece: Piece) -> None:
        place, request = piece.place, piece.place.request
        self._pool.take(self._pool.paged(piece.end) - self._pool.paged(piece.start))
        request.placed = True
        if request.started_ms is None:
            request.started_ms = self._now_ms
            request.cached_tokens = piece.start
            self._totals.cached_tokens += piece.start
        place.computed_tokens = piece.end

    def _begin_decode(self) -> Step | None:
        batch = self._batch
        tokens = batch.next_step_tokens()
        if self._pool.make_free(tokens):
            self._ratio.decay()
        else:
            self._retract()
            if not batch:
                return None
            tokens = batch.next_step_tokens()
        self._pool.take(tokens)
        return decode_step(self._times, len(batch), batch.context_tokens)

    def _retract(self) -> None:
        batch = self._batch

        def fits(kept: list[Place]) -> bool:
            return self._pool.make_free(batch.next_step_tokens(kept))

        victims, lost = retract(batch.places, self._flags, fits, self._selection.give_up)
        self._ratio.after_retraction(batch.places)
        self._totals.retracted_requests += len(victims)
        if lost is not None:
            self._out_of_memory(lost)
        for victim in victims:
            refused = self._waiting.enter(victim)
            if refused is not None:
                self._refuse_again(refused)

    def _out_of_memory(self, place: Place) -> None:
        self._totals.out_of_memory += 1
        del self._places[place.request]
        self._decides_ended.append((place.request, EndReason.OUT_OF_MEMORY))

    def _refuse_again(self, place: Place) -> None:
        """SGLang refuses a place in a full queue to those who lost theirs in the batch, too."""
        self._totals.refused += 1
        del self._places[place.request]
        self._decides_ended.append((place.request, EndReason.ABORT))

    def _end_decode(self, end: StepEnd) -> None:
        generated, ended = self._batch.advance()
        end.generated = generated
        if ended:
            self._batch.leave([place for place, _ in ended])
            for place, reason in ended:
                self._end(place, reason, end)

    def _end_piece(self, piece: Piece, end: StepEnd, now_ms: float) -> None:
        place, request = piece.place, piece.place.request
        if not piece.completes:
            if not place.aborting:
                self._pool.publish(place, piece.end)
            return
        if place.ends_at > 0:
            request.generated += 1
            if request.first_token_ms is None:
                request.first_token_ms = now_ms
            end.generated.append(request)
        if request.generated >= place.ends_at or place.aborting:
            self._end(place, end_reason(place), end)
        else:
            self._pool.publish(place, piece.end)
            self._batch.join(place)

    def _end(self, place: Place, reason: EndReason, end: StepEnd, *, keep: bool = True) -> None:
        self._pool.release(place, keep=keep)
        self._selection.left()
        if reason is EndReason.ABORT:
            self._totals.aborted += 1
        del self._places[place.request]
        end.ended.append((place.request, reason))

    def _leave_aborted(self, end: StepEnd) -> None:
        """Those who were in no place to end with the step itself."""
        half = self._selection.chunked
        if half is not None and half.aborting:
            self._selection.chunked = None
            self._end(half, EndReason.ABORT, end, keep=False)
        gone = [place for place in self._batch.places if place.aborting]
        if gone:
            self._batch.leave(gone)
            for place in gone:
                self._end(place, EndReason.ABORT, end)

    def _leave_between_steps(self, place: Place) -> None:
        if self._selection.chunked is place:
            self._selection.chunked = None
            self._pool.release(place, keep=False)
        else:
            self._batch.leave([place])
            self._pool.release(place, keep=True)
        self._selection.left()

    def _settle_if_idle(self) -> None:
        if self._step is None and not self.has_work:
            self._ratio.reset()
            self._report.idle(self._now_ms)

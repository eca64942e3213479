"""Whether the next step is a prefill, and of whom: the round that SGLang runs before every step."""

from backend.simulated.admission import PrefillPass, Verdict
from backend.simulated.batch import DecodeBatch
from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place
from backend.simulated.request import SimulatedRequest
from backend.simulated.retraction import RETRACT_STEPS, NewTokenRatio, preemptible
from backend.simulated.waiting import WaitingQueue


class Selection:
    """Takes places from the queue into a prefill, and carries over the one whose prompt is cut."""

    def __init__(
        self,
        flags: SchedulerFlags,
        pool: KvPool,
        waiting: WaitingQueue,
        batch: DecodeBatch,
        ratio: NewTokenRatio,
    ) -> None:
        self._flags = flags
        self.pool = pool
        self.waiting = waiting
        self.batch = batch
        self.ratio = ratio
        self._full = False
        """No one fits until someone leaves."""
        self._decodes_first = 0
        """Decode steps to run before the next prefill."""
        self._preempts = flags.enable_priority_scheduling and not flags.disable_priority_preemption
        self.chunked: Place | None = None
        """Whose prompt is computed in part, with more of it to come."""
        self._refused: list[Place] = []
        self._impossible: list[Place] = []
        self._preempted = 0
        self.lost: list[SimulatedRequest] = []
        """Who gave up their place, in that order, since this was last emptied."""

    def left(self) -> None:
        """Someone has left the batch."""
        self._full = False

    def take_refused(self) -> list[Place]:
        """Those for whom the queue had no room after a preemption; asked for once."""
        refused, self._refused = self._refused, []
        return refused

    def take_impossible(self) -> list[Place]:
        """Those who do not fit even alone; asked for once."""
        impossible, self._impossible = self._impossible, []
        return impossible

    def take_preempted(self) -> int:
        """How many gave their place to a better priority; asked for once."""
        preempted, self._preempted = self._preempted, 0
        return preempted

    def give_up(self, place: Place, staying: int) -> None:
        """A running sequence loses its place and all it holds, to be computed again; room is made
        for the next steps of those who stay."""
        self.batch.leave([place])
        self.pool.release(place, keep=False)
        self.pool.make_free(staying * RETRACT_STEPS)
        place.lost_place = True
        place.request.retractions += 1
        place.request.placed = False
        self.lost.append(place.request)
        self._full = False

    def next_prefill(self) -> PrefillPass | None:
        """The next prefill step with at least one piece, or None: decode."""
        if self._decodes_first and self.batch:
            self._decodes_first -= 1
            return None
        self._decodes_first = 0
        if self._preempts or not self.batch:
            self._full = False
        if self.chunked is None:
            if self._full or not self.waiting:
                return None
            if len(self.batch) >= self._flags.max_running_requests and not self._preempts:
                self._full = True
                return None
        self.waiting.order()
        chosen = self._select()
        if not chosen.pieces:
            return None
        self._decodes_first = self._flags.prefill_decode_interval
        return chosen

    def _select(self) -> PrefillPass:
        batch = self.batch
        beside = len(batch) if self._flags.enable_mixed_chunk else 0
        chosen = PrefillPass(self.pool, self._flags, batch.places, self.ratio.current, beside)
        parked = 0
        if self.chunked is not None:
            if not chosen.proceed(self.chunked):
                parked = 1
            elif chosen.pieces[0].completes:
                self.chunked = None
        carried = len(chosen.pieces)
        preempted: list[Place] = []
        for place in self.waiting.places:
            if chosen.verdict is Verdict.OTHER:
                break
            if len(batch) + len(chosen.pieces) + parked >= self._flags.max_running_requests:
                self._full = True
            if self._full and not self._preempt(place, chosen, preempted):
                break
            if self._try(place, chosen) is not Verdict.CONTINUE:
                break
        self.waiting.take([piece.place for piece in chosen.pieces[carried:]])
        self.waiting.take(self._impossible)
        for victim in preempted:
            refused = self.waiting.enter(victim)
            if refused is not None:
                self._refused.append(refused)
        return chosen

    def _try(self, place: Place, chosen: PrefillPass) -> Verdict:
        alone = not (self.batch or chosen.pieces or self.chunked)
        chunking = self.chunked is not None
        before = len(chosen.pieces)
        verdict = chosen.admit(place, alone=alone, chunking=chunking)
        if len(chosen.pieces) > before and not chosen.pieces[-1].completes:
            self.chunked = place
        if verdict is Verdict.NO_TOKEN:
            if alone and not chosen.pieces:
                self._impossible.append(place)
                return Verdict.CONTINUE
            self._full = bool(chosen.pieces or self.batch)
        return verdict

    def _preempt(self, arrival: Place, chosen: PrefillPass, preempted: list[Place]) -> bool:
        if not self._preempts:
            return False
        victims = preemptible(
            arrival,
            self.batch.places,
            chosen,
            self.ratio.current,
            self._flags.priority_scheduling_preemption_threshold,
        )
        for victim in victims:
            chosen.memory_freed(victim)
            self.give_up(victim, len(self.batch) - 1)
        preempted.extend(victims)
        self._preempted += len(victims)
        return bool(victims)

"""The queue before the batch: its order, and who has to go when it is full."""

import heapq
from itertools import count

from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place
from backend.simulated.radix_cache import RadixCache

_LPM_WAITING_MAX = 128
"""Beyond so many, matching every one against the cache costs more than it brings."""
_SHARED_TOKENS = 32
"""A waiting prompt with less of it in the cache, and as much in common with another waiting one,
lets that one go first."""


class WaitingQueue:
    """Places in the order in which they will be tried."""

    def __init__(self, flags: SchedulerFlags, pool: KvPool) -> None:
        self._flags = flags
        self._pool = pool
        self._lpm = flags.schedule_policy == "lpm" and not flags.disable_radix_cache
        self._entries = count()
        self.places: list[Place] = []
        self._worst_first: list[tuple[int, int, Place]] = []
        """A heap of who would have to go, kept only where someone may have to; those who have left
        the queue stay in it until they come to its top, or are most of it."""
        self._keeps_worst = (
            flags.enable_priority_scheduling and flags.max_queued_requests is not None
        )
        self.text_tokens = 0
        """Of all who wait."""
        self.retracted = 0
        """How many of them ran before."""

    def __len__(self) -> int:
        return len(self.places)

    @property
    def matched(self) -> bool:
        """Whether each place's `matched_tokens` is kept."""
        return self._lpm and len(self.places) <= _LPM_WAITING_MAX

    def enter(self, place: Place) -> Place | None:
        """Queue it. Returns the one for whom there is no room: this one, or the least preferred
        queued one if this one is preferred to it."""
        most = self._flags.max_queued_requests
        refused = None
        if most is not None and len(self.places) + 1 > most:
            refused = self._least_preferred(place)
            if refused is place:
                return place
            self.remove(refused)
        place.enter_queue(next(self._entries))
        self.places.append(place)
        if self._keeps_worst:
            self._keep_for_eviction(place)
        self.text_tokens += place.text_tokens
        self.retracted += place.lost_place
        return refused

    def remove(self, place: Place) -> None:
        """It waits no more. Raises ValueError if it did not."""
        self.places.remove(place)
        self._gone(place)

    def order(self) -> None:
        """Sort by the policy: before anyone is taken from it."""
        if self.matched:
            self._order_by_prefix()
        elif self._flags.enable_priority_scheduling and not self._lpm:
            self.places.sort(key=lambda place: (place.priority, place.entered))

    def take(self, admitted: list[Place]) -> None:
        """These have left it for the batch."""
        if not admitted:
            return
        if self.places[: len(admitted)] == admitted:
            del self.places[: len(admitted)]
        else:
            gone = set(map(id, admitted))
            self.places = [place for place in self.places if id(place) not in gone]
        for place in admitted:
            self._gone(place)

    def uncached_tokens(self, recent_hit_rate: float) -> int:
        """What is left to compute for those who wait: by what the cache holds if the queue is
        ordered by that, else reckoned with the recent hit rate."""
        if self.matched:
            return sum(max(0, p.text_tokens - p.matched_tokens) for p in self.places)
        return int(self.text_tokens * (1.0 - recent_hit_rate))

    def _gone(self, place: Place) -> None:
        place.waiting = False
        self.text_tokens -= place.text_tokens
        self.retracted -= place.lost_place

    def _keep_for_eviction(self, place: Place) -> None:
        heap = self._worst_first
        heapq.heappush(heap, (-place.priority, -place.entered, place))
        if len(heap) > 2 * len(self.places):
            heap[:] = [each for each in heap if _still_waits(each)]
            heapq.heapify(heap)

    def _least_preferred(self, arrival: Place) -> Place:
        if not self._keeps_worst or not self.places:
            return arrival
        heap = self._worst_first
        while not _still_waits(heap[0]):
            heapq.heappop(heap)
        last = heap[0][2]
        return last if arrival.priority < last.priority else arrival

    def _order_by_prefix(self) -> None:
        among_waiting = RadixCache(1)
        yielding: set[int] = set()
        for place in self.places:
            salt, tokens = place.request.salt, place.text_tokens
            held, _ = self._pool.match(place.ids, tokens, salt)
            place.matched_tokens = min(held, tokens - 1)
            if held > _SHARED_TOKENS:
                continue
            if among_waiting.match(place.ids, tokens, salt)[0] >= _SHARED_TOKENS:
                yielding.add(id(place))
            else:
                among_waiting.insert(place.ids, tokens, salt)
        # Those who yield keep the order in which they came.
        self.places.sort(key=lambda p: (1, 0) if id(p) in yielding else (0, -p.matched_tokens))


def _still_waits(entry: tuple[int, int, Place]) -> bool:
    """Whether it is in the queue by this entry, and not by a later one."""
    _, minus_entered, place = entry
    return place.waiting and place.entered == -minus_entered

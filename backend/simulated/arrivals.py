"""Requests in the worker's front end: they have arrived and are not in the queue yet."""

import heapq
from itertools import count

from backend.simulated.sequence import SimulatedSequence


class Arrivals:
    """By the simulated time at which the front end is through with them."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, SimulatedSequence]] = []
        self._order = count()

    def add(self, due_ms: float, sequence: SimulatedSequence) -> None:
        """It will be in the queue then."""
        heapq.heappush(self._heap, (due_ms, next(self._order), sequence))

    @property
    def next_ms(self) -> float | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None

    def pop_until(self, now_ms: float) -> tuple[float, SimulatedSequence] | None:
        """The next one that is due by now."""
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        due_ms, _, sequence = heapq.heappop(self._heap)
        return due_ms, sequence

    def remove(self, lives: set[int]) -> list[SimulatedSequence]:
        """Take out those whose live sequences have these identities."""
        gone = [each[2] for each in self._heap if id(each[2].live) in lives]
        if gone:
            self._heap = [each for each in self._heap if id(each[2].live) not in lives]
            heapq.heapify(self._heap)
        return gone

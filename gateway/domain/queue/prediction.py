"""How long a request will wait: the work ahead of it over the speed of the pool.

Speed is what runs over how long it stays (Little's law): the weighted tokens of all places over the
mean time that a weighted token's request held its place. It follows at once when places are added,
and is unknown until something has ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.domain.queue.fairness import UNITS

MEMORY = 16
"""The mean forgets with a factor of 1 - 1/MEMORY a departure."""


@dataclass
class Speed:
    """The running mean over departures of how long a place was held, weighted by cost."""

    cost: int = 0
    cost_ms: int = 0

    def departed(self, cost: int, held_ms: int) -> None:
        """A request that ran has ended; its cost in weighted tokens."""
        self.cost += cost - self.cost // MEMORY
        self.cost_ms += cost * max(1, held_ms) - self.cost_ms // MEMORY

    def wait_ms(self, ahead: int, running: int) -> int | None:
        """Until so many weighted tokens have been granted, while `running` run."""
        if ahead <= 0:
            return 0
        if self.cost <= 0 or running <= 0:
            return None
        return ahead * (self.cost_ms // self.cost) // running


@dataclass(frozen=True)
class Backlog:
    """What one tenant has waiting in a band."""

    counter: int
    waiting: int
    """Weighted tokens."""
    weight: int


def ahead_of(counter: int, own: int, weight: int, others: Iterable[Backlog]) -> int:
    """Weighted tokens of a band that are granted before a request of a tenant that stands at
    `counter`: `own`, which its tenant has waiting before it, and of each other tenant as much as
    it takes until that stands where this tenant will stand then."""
    reached = counter + own * UNITS // weight
    return own + sum(
        min(other.waiting, max(0, (reached - other.counter) * other.weight // UNITS))
        for other in others
    )

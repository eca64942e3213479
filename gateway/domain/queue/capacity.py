"""Room on the workers of a pool: two ceilings, and a lower one for batch.

What is inside an engine can no longer be reordered, so no more is sent to it than it serves in
time. A worker takes a request while

- sequences: `running + n <= sequences_max`, for batch `<= batch_max` (the latency ceiling: learned
  from TPOT, `ceilings`), and
- memory: `tokens + need <= tokens_max`, what running requests are expected to grow to included.

A worker on which nothing runs takes any request: what its engine cannot hold at all was refused
before.
"""

from dataclasses import dataclass

from gateway.domain.queue.tickets import Ticket

FORGOTTEN_MS = 600_000
"""A worker on which nothing runs and that has not been well for so long is unknown again."""
SEEN_MS = 3_000
"""A worker that no gateway has found well for so long takes nothing."""


@dataclass
class WorkerRoom:
    """One worker's ceilings, and what places on it hold. Of what is unknown there is no ceiling
    (a very large number)."""

    id: str
    sequences_max: int
    batch_max: int
    tokens_max: int
    well_until_ms: int
    running: int = 0
    tokens: int = 0
    asked_back: int = 0
    """Places here that were asked back and are not free yet."""

    def takes(self, ticket: Ticket, *, as_batch: bool, now_ms: int) -> bool:
        """Whether the request may be sent here now."""
        if self.well_until_ms <= now_ms:
            return False
        if self.running == 0:
            return True
        most = self.batch_max if as_batch else self.sequences_max
        return (
            self.running + ticket.sequences <= most
            and self.tokens + ticket.need_tokens <= self.tokens_max
        )

    def add(self, ticket: Ticket) -> None:
        """A place here is granted."""
        self.running += ticket.sequences
        self.tokens += ticket.need_tokens

    def remove(self, ticket: Ticket) -> None:
        """A place here is free."""
        self.running -= ticket.sequences
        self.tokens -= ticket.need_tokens

    def width_permille(self, ticket: Ticket, *, as_batch: bool) -> int:
        """The part of it that the request needs, in 1/1,000 of the ceiling that it needs more of;
        at most all."""
        most = self.batch_max if as_batch else self.sequences_max
        return min(
            1_000,
            max(
                ticket.sequences * 1_000 // max(1, most),
                ticket.need_tokens * 1_000 // max(1, self.tokens_max),
            ),
        )

    @property
    def fill(self) -> int:
        """How full it is, in 1/1,000,000 of the fuller ceiling."""
        return max(
            self.running * 1_000_000 // max(1, self.sequences_max),
            self.tokens * 1_000_000 // max(1, self.tokens_max),
        )

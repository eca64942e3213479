"""What is known of a worker's ceilings, and the record in which gateways share it."""

from dataclasses import dataclass

from gateway.domain.queue.samples import Samples


@dataclass(frozen=True)
class Learned:
    """What is known of a worker."""

    epoch: int
    """One more with each decision."""
    since_ms: int
    """A stretch that began earlier is not counted: what was decided did not show yet."""
    sequences: int
    batch: int
    """Where batch stops while there is interactive."""
    alone: int
    """Where it stops while there is none."""
    is_alone: bool
    high: int
    """The highest that batch's ceiling was seen to do well at: up to there it grows fast again."""
    is_falling: bool = False
    """The last decision was a cut."""
    drains_ms: int = 0
    """Until then more than is allowed may run, from when batch was alone."""

    @property
    def batch_max(self) -> int:
        """Where batch stops now."""
        return self.alone if self.is_alone else self.batch


@dataclass(frozen=True)
class Record:
    """What all gateways know of a worker, and what they saw of it since that was decided."""

    learned: Learned
    samples: Samples

    def met(self, brought: "Record") -> "Record":
        """Once a gateway has brought what it knows and what it saw. The later epoch counts; of one
        epoch what was there first."""
        learned = brought.learned if self.yields_to(brought) else self.learned
        return Record(learned, Samples(learned.epoch).plus(self.samples).plus(brought.samples))

    def yields_to(self, brought: "Record") -> bool:
        """Whether a gateway that brings this has decided, or knows more than is remembered."""
        return brought.learned.epoch > self.learned.epoch


def direction(before: Learned, after: Learned) -> str:
    """What a decision came to: `cut`, `grown` or `kept`; `alone` or `beside` where interactive has
    gone or come."""
    if before.is_alone != after.is_alone:
        return "alone" if after.is_alone else "beside"
    sizes = (before.batch_max, before.sequences), (after.batch_max, after.sequences)
    if sizes[0] == sizes[1]:
        return "kept"
    is_less = any(then > now for then, now in zip(*sizes, strict=True))
    return "cut" if is_less else "grown"

"""What gateways saw of a worker since the last decision about its ceilings: a small record of
whole numbers that they add up in any order."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Samples:
    """Of one epoch of one worker."""

    epoch: int
    counted: int = 0
    """Stretches of answers that say something about the ceilings."""
    over: int = 0
    """Of these, how many had a TPOT over the target."""
    running: int = 0
    """The sum of how many sequences ran on the worker at their ends."""
    ended: int = 0
    """Requests that ended."""
    stay_ms: int = 0
    """The sum of how long these held their places."""
    looks: int = 0
    """How often a gateway looked who waits."""
    bound: int = 0
    """How often interactive waited for the ceiling."""
    batch_bound: int = 0
    """How often batch waited for its own."""
    batch_ran: int = 0
    """How often the gateway that looked had batch running here."""
    interactive_ms: int = 0
    """When interactive was last seen to wait or run in the pool (Unix ms); of all epochs."""

    def plus(self, other: "Samples") -> "Samples":
        """Both. Of two epochs only the later one counts."""
        seen_ms = max(self.interactive_ms, other.interactive_ms)
        if self.epoch != other.epoch:
            later = self if self.epoch > other.epoch else other
            return Samples(**{**_values(later), "interactive_ms": seen_ms})
        mine, others = _values(self), _values(other)
        added = {name: mine[name] + others[name] for name in mine}
        return Samples(**{**added, "epoch": self.epoch, "interactive_ms": seen_ms})


def _values(samples: Samples) -> dict[str, int]:
    return {field.name: getattr(samples, field.name) for field in fields(samples)}

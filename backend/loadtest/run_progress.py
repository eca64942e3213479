"""How far a run is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a run, several times a second."""

    at_ms: float
    """In the target's time, since the start of the schedule; negative before it."""
    planned: int
    sent: int
    ended: int
    ok: int

    @property
    def in_flight(self) -> int:
        """Sent, and without an end."""
        return self.sent - self.ended

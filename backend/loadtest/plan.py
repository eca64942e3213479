"""What a load test will send, drawn whole before the first request goes out."""

from dataclasses import dataclass
from typing import Literal

TrafficClass = Literal["interactive", "batch"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of prompt tokens. Segments of one key and one place in the prompt are the same text."""

    key: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request. Times are milliseconds since the start of the run, in the target's time."""

    number: int
    send_at_ms: float
    tenant: str
    traffic_class: TrafficClass
    segments: tuple[Segment, ...]
    """The prompt: these, one after the other."""
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """As planned; an engine's chat template adds a few."""
        return sum(segment.tokens for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Workload:
    """A whole schedule and where it comes from."""

    name: str
    sha256: str
    """Of the trace file, or of the parameters where there is none."""
    seed: int
    arrivals: str
    """How send times were drawn, in a few words."""
    requests: tuple[PlannedRequest, ...]
    duration_ms: float
    ideal_hit_rate: float
    """Share of prompt tokens that a prefix cache without bounds would find (cold at the start)."""

    @property
    def offered_rps(self) -> float:
        """Requests per second of the target's time."""
        return len(self.requests) / (self.duration_ms / 1000)

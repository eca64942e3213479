"""A request before it has a number and a time."""

from dataclasses import dataclass

from backend.loadtest.plan import PlannedRequest, Segment, TrafficClass


@dataclass(frozen=True, slots=True)
class Draft:
    """What one request will be."""

    tenant: str
    traffic_class: TrafficClass
    shared: tuple[Segment, ...]
    """What of its prompt others may have too."""
    suffix_tokens: int
    """What follows and is its own."""
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """All of the prompt."""
        return sum(segment.tokens for segment in self.shared) + self.suffix_tokens

    def planned(self, number: int, send_at_ms: float) -> PlannedRequest:
        """With its number, which its own part of the prompt is named after, and its time."""
        own = (Segment(f"request-{number}", self.suffix_tokens),) if self.suffix_tokens else ()
        return PlannedRequest(
            number=number,
            send_at_ms=send_at_ms,
            tenant=self.tenant,
            traffic_class=self.traffic_class,
            segments=self.shared + own,
            output_tokens=self.output_tokens,
        )


def tenant_name(number: int) -> str:
    """As in the `seedlike` trace."""
    return f"t{number:02d}"

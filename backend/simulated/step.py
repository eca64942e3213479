"""One step of the simulated engine: what it does, how long it takes and what comes of it."""

from dataclasses import dataclass, field
from typing import Literal

from backend.simulated.admission import Piece
from backend.simulated.profiles import StepTimes
from backend.simulated.request import EndReason, SimulatedRequest


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it begins. One that takes no time and has no sequences only reports those whose
    end was decided without a step."""

    kind: Literal["prefill", "decode", "mixed"]
    duration_ms: float
    new_tokens: int
    """Prompt tokens computed, those of a retracted sequence's output among them."""
    sequences: int
    """How many decode."""
    context_tokens: int
    """The sum of the context lengths of those."""


@dataclass(slots=True)
class StepEnd:
    """What came of a step."""

    generated: list[SimulatedRequest] = field(default_factory=list)
    """Each has one more token, counted in its `generated` already."""
    ended: list[tuple[SimulatedRequest, EndReason]] = field(default_factory=list)


def decode_step(times: StepTimes, sequences: int, context_tokens: int) -> Step:
    """A step in which so many sequences decode over so many tokens."""
    return Step("decode", times.decode_ms(sequences, context_tokens), 0, sequences, context_tokens)


def prefill_step(
    times: StepTimes, pieces: list[Piece], sequences: int, context_tokens: int
) -> Step:
    """A step that computes these pieces; with sequences that decode beside them it is mixed."""
    new = 0
    attended = 0.0
    for piece in pieces:
        length = piece.end - piece.start
        new += length
        attended += length * (piece.start + length / 2)
    if sequences:
        duration = times.mixed_ms(new, attended, sequences, context_tokens)
        return Step("mixed", duration, new, sequences, context_tokens)
    return Step("prefill", times.prefill_ms(new, attended), new, 0, 0)

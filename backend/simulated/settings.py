"""How a simulated worker behaves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimulatedSettings:
    """Sizes in tokens, times in microseconds. The defaults are round figures of one large GPU
    replica, not a measurement of any."""

    model: str = "simulated"
    context_tokens: int = 8192
    max_running_requests: int = 64
    max_queued_requests: int | None = None
    kv_tokens: int = 200_000
    prefill_us_per_token: int = 50
    prefill_chunk_tokens: int = 8192
    """The most prompt tokens that one step computes."""
    step_base_us: int = 10_000
    """One decode step with an empty batch."""
    step_us_per_sequence: int = 50
    natural_output_tokens: int = 512
    """Roughly where text ends by itself: between three and five quarters of it."""
    seed: int = 0

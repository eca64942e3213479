"""How long one step of a simulated replica takes, and where the constants come from.

Times are milliseconds of simulated time. The formulas are those of a linear step model: a decode
step pays for its batch and for the KV cache it reads, a prefill step for its new tokens and for
the attention between them and what lies before them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The six constants.

    Decode: `a0 + a1*B + a2*S`; prefill: `b0 + b1*N + b2*Q`; both in one step:
    `b0 + b1*N + b2*Q + a1*B + a2*S`. B is the sequences that decode, S the sum of their context
    lengths in tokens (a shared prefix counts for each: attention reads it per sequence), N the new
    prompt tokens, Q the sum over prompts of `n * (prefix + n/2)` in tokens squared.
    """

    a0_ms: float
    a1_ms: float
    a2_ms: float
    b0_ms: float
    b1_ms: float
    b2_ms: float

    def decode_ms(self, sequences: int, context_tokens: int) -> float:
        """One decode step."""
        return self.a0_ms + self.a1_ms * sequences + self.a2_ms * context_tokens

    def prefill_ms(self, new_tokens: int, attended: float) -> float:
        """One prefill step."""
        return self.b0_ms + self.b1_ms * new_tokens + self.b2_ms * attended

    def mixed_ms(
        self, new_tokens: int, attended: float, sequences: int, context_tokens: int
    ) -> float:
        """One step that does both."""
        decoding = self.a1_ms * sequences + self.a2_ms * context_tokens
        return self.prefill_ms(new_tokens, attended) + decoding


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of replica."""

    name: str
    step: StepTimes
    front_end_ms: float
    """HTTP, tokenising and scheduling, from the request's arrival to the engine's queue."""
    kv_tokens: int
    """What its KV pool holds."""
    context_tokens: int
    source: str
    """Where the constants come from, in one sentence."""


_FITTED = StepTimes(11.07, 0.0463, 3.0e-5, 5.6, 0.0400, 1.0e-6)
_INFERENCEMAX = (
    "least squares on the 15 points of InferenceMAX's run of 2025-10-29: Llama-3.1-70B FP8, vLLM, "
    "four H100 SXM, concurrency 4 to 64"
)

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("h100x4-70b-fp8", _FITTED, 30.0, 640_000, 131_072, _INFERENCEMAX),
        Profile(
            "h100x4-70b-fp8-kvfp8",
            StepTimes(11.07, 0.0463, 2.1e-5, 5.6, 0.0400, 0.9e-6),
            30.0,
            1_280_000,
            131_072,
            f"{_INFERENCEMAX}; the reading of an FP8 KV cache scaled by aiconfigurator 0.12.0's "
            "tables, not measured",
        ),
        Profile(
            "h100x4-70b-fp8-kernel",
            StepTimes(8.91, 0.0353, 2.757e-5, 5.41, 0.0428, 1.02e-6),
            30.0,
            640_000,
            131_072,
            "sum of kernel times in aiconfigurator 0.12.0's tables (H100 SXM, SGLang 0.5.14); "
            "optimistic: 16 % under the measured points",
        ),
    )
}
DEFAULT_PROFILE = PROFILES["h100x4-70b-fp8"]

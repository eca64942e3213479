"""How much a worker may hold: memory from its engine, latency from what was learned of it.

Three ceilings (`capacity.WorkerRoom`): tokens, sequences in all, and sequences at which batch
stops. Batch's is the lower one: what lies between is free for interactive requests that come.
`learning` says how the last two follow TPOT; here is where they begin.
"""

from dataclasses import dataclass

NO_CEILING = 2**53 - 1
"""The largest whole number that every store and language keeps exactly."""
MEMORY_PERMILLE = 950
"""Of an engine's KV tokens: a request without a maximum may grow beyond its estimate."""
START = 64
"""Where batch stops on a worker of which nothing is known."""
KEPT_FREE = 2
"""So many times batch's ceiling is the ceiling of all to begin with."""
P95_OVER_MEAN = 1.35
"""TPOT of a worker under an open load, as simulated (h100x4-70b-fp8, 4 to 8 requests a second)."""


@dataclass(frozen=True)
class EngineFacts:
    """What a worker says of itself; None where it does not."""

    kv_tokens: int | None = None
    """SGLang's `max_total_num_tokens`."""
    running_max: int | None = None
    """SGLang's `max_running_requests`."""

    def bounded(self, sequences: int) -> int:
        """No more than its engine runs, and one at least."""
        return max(1, min(sequences, self.running_max or NO_CEILING))


@dataclass(frozen=True)
class Ceilings:
    """What a worker may hold."""

    sequences_max: int
    batch_max: int
    tokens_max: int


@dataclass(frozen=True)
class StepConstants:
    """Of an engine whose steps were measured: a decode step takes `step_ms + sequence_ms · B +
    token_ms · S` for B sequences whose contexts are S tokens together."""

    step_ms: float
    sequence_ms: float
    token_ms: float


def memory_ceiling(facts: EngineFacts) -> int:
    """KV tokens that the requests on a worker may come to hold together."""
    if facts.kv_tokens is None:
        return NO_CEILING
    return facts.kv_tokens * MEMORY_PERMILLE // 1000


def batch_start(
    steps: StepConstants, *, tpot_us: int, context_tokens: float, prefill_share: float
) -> int:
    """How many sequences of this mean context run when the p95 of TPOT is at its target, on an
    engine that prefills for this share of the time. One where the target cannot be met."""
    decode_ms = tpot_us / 1000 / P95_OVER_MEAN * (1 - prefill_share)
    each_ms = steps.sequence_ms + steps.token_ms * context_tokens
    return max(1, int((decode_ms - steps.step_ms) / each_ms))

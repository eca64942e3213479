"""One sequence as the simulated scheduler holds it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

TOKEN_BYTES = 4
"""A token id in a prompt or in cached text: unsigned, little-endian."""


class EndReason(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    OUT_OF_MEMORY = "out_of_memory"
    """It did not fit even alone: SGLang aborts it with status 500."""


@dataclass(slots=True, eq=False, kw_only=True)
class SimulatedRequest:
    """What the driver gives, and below it what the scheduler notes. Times are simulated ms."""

    rid: str
    prompt: bytes
    """Token ids, TOKEN_BYTES each."""
    max_new_tokens: int
    """Its maximum, within what the pool can ever hold: what the scheduler reckons with."""
    ends_after: int
    """After how many tokens its text ends by itself; at or beyond `max_new_tokens` it is cut."""
    output_ids: Callable[[int], bytes]
    """The ids of its first so many output tokens, for the prefix cache."""
    salt: bytes = b""
    """Prompts of different salts share no prefix."""
    priority: int | None = None
    ignore_eos: bool = False
    """It runs to its maximum, and the scheduler reserves all of it."""
    owner: object = None
    """The driver's own; the scheduler does not look at it."""

    arrived_ms: float = 0.0
    started_ms: float | None = None
    """When its first prefill step began."""
    first_token_ms: float | None = None
    generated: int = 0
    cached_tokens: int = 0
    """Prompt tokens found in the prefix cache at its first admission."""
    placed: bool = False
    """It has a place in the batch, or its prompt is being computed for one."""
    retractions: int = 0
    """How often it lost its place, to memory or to a better priority, and was computed again."""

"""One sequence in the simulated engine: how far its prompt is computed, and its next token."""

import os
import signal
import time
from dataclasses import dataclass

from backend.sglang_http.live import LiveSequence
from backend.simulated import vocabulary
from backend.simulated.settings import SimulatedSettings


@dataclass(slots=True, eq=False)
class SimulatedSequence:
    """A live sequence with what the simulation knows about it."""

    live: LiveSequence
    max_tokens: int
    """Its own maximum, within what the KV pool can ever hold."""
    natural_end: int
    """After how many tokens its text ends by itself."""
    text_key: int
    prompt_left: int = 0
    """Prompt tokens that are still to be computed."""
    next_token_at: float | None = None
    """Under a `slow` fault, the earliest instant of its next token (monotonic seconds); None before
    the first that is slow."""

    @property
    def reserved_tokens(self) -> int:
        """KV tokens it may come to hold."""
        return self.live.generation.prompt_tokens + self.max_tokens

    def held_back(self) -> bool:
        """Whether a fault keeps it from generating in this step. `die` does not return."""
        fault = self.live.request.fault
        if fault is None or self.live.generation.completion_tokens < fault.after_tokens:
            return False
        if fault.kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == "slow":
            now = time.monotonic()
            if self.next_token_at is None:
                self.next_token_at = now + fault.delay_ms / 1000
            if now < self.next_token_at:
                return True
            self.next_token_at = now + fault.delay_ms / 1000
        return fault.kind == "stall"


def simulated_sequence(live: LiveSequence, settings: SimulatedSettings) -> SimulatedSequence:
    """The sequence as the simulation will run it."""
    request = live.request
    sampling = request.sampling
    greedy = sampling.temperature == 0.0
    seed = settings.seed if greedy or sampling.seed is None else sampling.seed
    key = vocabulary.text_key(request.prompt.tokens, seed)
    quarter = max(1, settings.natural_output_tokens // 4)
    room = settings.kv_tokens - live.generation.prompt_tokens
    return SimulatedSequence(
        live=live,
        max_tokens=min(sampling.max_tokens, room),
        natural_end=3 * quarter + key % (2 * quarter),
        text_key=key,
    )

"""One sequence of the simulated engine: its text, and what of it may be shown."""

import asyncio
import os
import signal
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from backend.sglang_http.faults import Fault
from backend.sglang_http.live import LiveSequence
from backend.simulated import vocabulary
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.settings import SimulatedSettings


@dataclass(slots=True, eq=False)
class SimulatedSequence:
    """The driver's side of a request in the scheduler."""

    live: LiveSequence
    text_key: int
    request: SimulatedRequest
    plain: bool
    """Nothing has to look at its tokens: neither stop strings nor a fault."""
    aborting: bool = False
    """It leaves with the step in flight."""
    held: int = 0
    """Tokens that the scheduler has given and a fault keeps back."""
    stalled: bool = False
    ending: tuple[EndReason, str | None] | None = None
    """How it ends once what is held is out."""
    timer: asyncio.TimerHandle | None = None
    """Its next held token."""

    def next_text(self) -> str | None:
        """The text of its next token; None where that is the end of text."""
        position = self.live.generation.completion_tokens + 1
        request = self.request
        if position >= request.ends_after and not request.ignore_eos:
            return None
        return vocabulary.token_text(self.text_key, position - 1)

    def output_ids(self, tokens: int) -> Sequence[int]:
        """The ids of its first so many output tokens."""
        ids = vocabulary.output_ids(self.text_key, tokens)
        request = self.request
        if tokens >= request.ends_after and not request.ignore_eos:
            ids[request.ends_after - 1 :] = array("I", [vocabulary.END_OF_TEXT_ID])
        return ids

    def struck(self) -> Fault | None:
        """The fault that keeps its next token back. `die` does not return."""
        fault = self.live.request.fault
        if fault is None or self.live.generation.completion_tokens < fault.after_tokens:
            return None
        if fault.kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return fault if fault.kind in ("stall", "slow") else None


def simulated_sequence(live: LiveSequence, settings: SimulatedSettings) -> SimulatedSequence:
    """The sequence as the scheduler will run it."""
    asked = live.request
    sampling = asked.sampling
    prompt = array("I", asked.prompt.tokens).tobytes()
    greedy = sampling.temperature == 0.0
    seed = settings.seed if greedy or sampling.seed is None else sampling.seed
    key = vocabulary.text_key(prompt, seed)
    quarter = max(1, settings.natural_output_tokens // 4)
    natural = 3 * quarter + key % (2 * quarter)

    def cached_ids(tokens: int) -> bytes:
        return vocabulary.output_ids(key, tokens).tobytes()

    request = SimulatedRequest(
        rid=asked.rid,
        prompt=prompt,
        max_new_tokens=sampling.max_tokens,
        # The end of text is a token too.
        ends_after=max(natural, sampling.min_tokens) + 1,
        output_ids=cached_ids,
        salt=asked.salt_digest,
        priority=asked.priority,
        ignore_eos=sampling.ignore_eos,
    )
    plain = asked.fault is None and not sampling.stop
    sequence = SimulatedSequence(live, key, request, plain)
    request.owner = sequence
    live.generation.output_ids = sequence.output_ids
    return sequence

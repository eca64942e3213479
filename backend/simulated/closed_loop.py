"""The closed loop that published benchmarks of serving engines run, on the virtual clock.

So many clients, each sending its next request the moment its last one ended; all begin at once.
InferenceMAX runs `benchmark_serving --request-rate inf --max-concurrency C` with ten requests a
client and lengths drawn uniformly between 0.8 and 1 of the nominal ones.
"""

import random
from dataclasses import dataclass

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile
from backend.simulated.request import TOKEN_BYTES, EndReason, SimulatedRequest
from backend.simulated.virtual import VirtualReplicas

REQUESTS_PER_CLIENT = 10
SHORTEST = 0.8


@dataclass(frozen=True, slots=True)
class ClosedLoopPoint:
    """One measurement. Lengths in tokens, the longest that are drawn."""

    input_tokens: int
    output_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class ClosedLoopResult:
    """Means over all requests, in simulated milliseconds; TTFT from the moment of sending."""

    ttft_ms: float
    tpot_ms: float


@dataclass(slots=True)
class _Sent:
    at_ms: float
    first_token_ms: float = 0.0
    last_token_ms: float = 0.0


class ClosedLoop:
    """One run; it observes the replica and keeps `concurrency` requests in flight."""

    def __init__(
        self, profile: Profile, flags: SchedulerFlags, point: ClosedLoopPoint, seed: int
    ) -> None:
        self._chance = random.Random(seed)  # noqa: S311 # lengths, not secrets
        self._point = point
        self._left = point.concurrency * REQUESTS_PER_CLIENT
        self._ttft_ms: list[float] = []
        self._tpot_ms: list[float] = []
        self._replica = VirtualReplicas(profile, flags, self)

    def run(self) -> ClosedLoopResult:
        """Run to the end."""
        for _ in range(self._point.concurrency):
            self._replica.at(0.0, self._send)
        self._replica.run()
        return ClosedLoopResult(
            sum(self._ttft_ms) / len(self._ttft_ms), sum(self._tpot_ms) / len(self._tpot_ms)
        )

    def generated(self, request: SimulatedRequest, now_ms: float) -> None:
        """Note first and last tokens."""
        sent = _sent(request)
        if request.generated == 1:
            sent.first_token_ms = now_ms
        sent.last_token_ms = now_ms

    def ended(self, request: SimulatedRequest, reason: EndReason | None, now_ms: float) -> None:
        """Measure it as the benchmark does, and send the next."""
        if reason is not EndReason.LENGTH:
            raise RuntimeError(f"{request.rid} ended by {reason}: the profile is too small for it")
        sent = _sent(request)
        self._ttft_ms.append(sent.first_token_ms - sent.at_ms)
        decoding_ms = sent.last_token_ms - sent.first_token_ms
        self._tpot_ms.append(decoding_ms / (request.generated - 1))
        self._replica.at(now_ms, self._send)

    def _send(self) -> None:
        if not self._left:
            return
        self._left -= 1
        number = self._left
        output_tokens = self._draw(self._point.output_tokens)
        mark = number.to_bytes(TOKEN_BYTES, "little")
        request = SimulatedRequest(
            rid=f"closed-{number}",
            # Nothing is shared: the benchmark's prompts are random.
            prompt=mark * self._draw(self._point.input_tokens),
            max_new_tokens=output_tokens,
            ends_after=output_tokens,
            output_ids=lambda tokens: mark * tokens,
            ignore_eos=True,
        )
        request.owner = _Sent(self._replica.now_ms)
        self._replica.arrive(request, 0)

    def _draw(self, longest: int) -> int:
        return self._chance.randint(round(longest * SHORTEST), longest)


def _sent(request: SimulatedRequest) -> _Sent:
    if not isinstance(request.owner, _Sent):
        raise TypeError("a request that this loop did not send")
    return request.owner

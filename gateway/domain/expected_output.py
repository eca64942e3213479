"""How many output tokens a choice without a maximum is expected to have: the learned p90. Pure.

What is learned sizes the reservation of requests that set no maximum, and nothing else. So it is
learned from such requests alone, those that ended by themselves or at the model's own cap:

- an answer that the client's maximum cut says only "at least so many". Counted as it is it pulls
  the p90 down; left out, while its siblings that ended sooner are counted, it does so too; and
  estimating the rest of it assumes that who sets a maximum asks for what others ask for. An answer
  that could not be cut needs none of that;
- what the model's cap cut is as long as any such answer can be, so it is no guess;
- what was aborted, failed or was refused says nothing of how long it would have become.

Each choice counts by itself. One tenant's answers to one model are one histogram with eight
buckets an octave, of which the upper edge is told: at most an eighth too many, never too few. All
weights are halved whenever they come to 512, so it follows a tenant within some hundred answers.
Each gateway learns by itself and forgets at its end; cold, the model's default holds.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

OBSERVATIONS_MIN = 20
"""Fewer tell no p90."""
WEIGHT_MAX = 512
PAIRS_MAX = 4_096
"""Of tenants and models; the least recently used is forgotten, then cold again. A histogram has at
most some 230 buckets and usually a dozen, so that all of them stay below 50 MB."""
_LIGHTEST = 1 / 64
_EXACT_BITS = 4
"""Significant bits that a bucket keeps."""


@dataclass
class _Histogram:
    weights: dict[int, float] = field(default_factory=dict)
    """By the upper edge of each bucket."""
    total: float = 0.0
    observations: int = 0

    def add(self, tokens: int) -> None:
        edge = _upper_edge(tokens)
        self.weights[edge] = self.weights.get(edge, 0.0) + 1.0
        self.total += 1.0
        self.observations += 1
        if self.total >= WEIGHT_MAX:
            halves = ((edge, weight / 2) for edge, weight in self.weights.items())
            self.weights = {edge: half for edge, half in halves if half >= _LIGHTEST}
            self.total = sum(self.weights.values())

    def p90(self) -> int:
        beyond = self.total / 10
        longest_first = sorted(self.weights, reverse=True)
        for edge in longest_first:
            beyond -= self.weights[edge]
            if beyond < 0:
                return edge
        return longest_first[-1]


class ExpectedOutput:
    """What was learned of every tenant's answers by each model, in bounded memory."""

    def __init__(self, *, pairs_max: int = PAIRS_MAX) -> None:
        self._pairs_max = pairs_max
        self._learned: OrderedDict[tuple[str, str], _Histogram] = OrderedDict()

    def __len__(self) -> int:
        return len(self._learned)

    def tokens(self, tenant_id: str, model: str, *, default: int) -> int:
        """Output tokens of a choice that nine in ten such answers do not pass; `default` until
        OBSERVATIONS_MIN were seen. At least 1."""
        learned = self._learned.get((tenant_id, model))
        if learned is None or learned.observations < OBSERVATIONS_MIN:
            return default
        self._learned.move_to_end((tenant_id, model))
        return max(1, learned.p90())

    def observe(self, tenant_id: str, model: str, output_tokens: int) -> None:
        """One choice of a completed request that set no maximum had so many output tokens."""
        learned = self._learned.setdefault((tenant_id, model), _Histogram())
        self._learned.move_to_end((tenant_id, model))
        learned.add(output_tokens)
        while len(self._learned) > self._pairs_max:
            self._learned.popitem(last=False)


def _upper_edge(tokens: int) -> int:
    """The largest count in the bucket of `tokens`; itself below 16."""
    shift = max(0, tokens.bit_length() - _EXACT_BITS)
    return ((tokens >> shift) + 1 << shift) - 1

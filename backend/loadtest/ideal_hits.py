"""What a prefix cache could find at best."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.loadtest.plan import PlannedRequest


def ideal_hit_rate(requests: Iterable[PlannedRequest]) -> float:
    """Share of prompt tokens that an unbounded prefix cache finds, from 0 to 1.

    It starts cold, sees the requests one after the other in the order given, keeps every prompt
    whole (answers are not counted) and is one cache for all tenants. One token of each prompt is
    always computed, as in an engine: the first output token comes from it.
    """
    cache = _UnboundedCache()
    found = total = 0
    for request in requests:
        prompt_tokens = request.prompt_tokens
        total += prompt_tokens
        found += max(0, min(cache.add(request), prompt_tokens - 1))
    return found / total if total else 0.0


@dataclass(slots=True)
class _UnboundedCache:
    """The prompts so far as a tree of segments; its nodes are numbers and the root is 0."""

    nodes: dict[tuple[int, str, int], int] = field(default_factory=dict)
    longest: dict[tuple[int, str], int] = field(default_factory=dict)
    """Of the segments of one key below one node: one key is one text, so of two lengths the
    shorter is the beginning of the longer."""

    def add(self, request: PlannedRequest) -> int:
        """How many of its prompt's tokens are there already; all are afterwards."""
        node, matched, matching = 0, 0, True
        for segment in request.segments:
            place = (node, segment.key)
            longest = self.longest.get(place, 0)
            if matching:
                matched += min(segment.tokens, longest)
            self.longest[place] = max(segment.tokens, longest)
            step = (*place, segment.tokens)
            matching = matching and step in self.nodes
            node = self.nodes.setdefault(step, len(self.nodes) + 1)
        return matched

"""What an engine says of itself, and what follows from it: priorities, and what it can hold. Pure.

The arithmetic is SGLang's own (0.5.23: get_worker_info of `managers/tp_worker.py`,
validate_input_length of `managers/utils.py`, init_req_max_new_tokens of `managers/scheduler.py`,
max_new_tokens_for_memory of `mem_cache/allocator/base.py`), with C the context length, K the KV
pool and p the page, in tokens:

- `max_req_len = min(C, K) - 1`, `max_req_input_len = max_req_len - 5`;
- a prompt of `max_req_input_len` tokens or more is refused (a stream with an error event);
- prompt + maximum over C is refused (400);
- any other maximum is cut down without a word to
  `min(max_req_len - prompt - 1, K - pages(prompt)·p - p - 1)`, and the answer ends with `length`.

So one request with a prompt of n tokens holds at most n + `output_room(n)`.
"""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.tenant import RequestClass

_INPUT_MARGIN_TOKENS = 5
_UNBOUNDED = 2**62


class PriorityOrder(StrEnum):
    """Which priority an engine that schedules by priority serves first."""

    HIGHEST_FIRST = "highest_first"
    LOWEST_FIRST = "lowest_first"


@dataclass(frozen=True)
class Need:
    """What one sequence of a request takes of a worker, in tokens."""

    prompt_tokens: int
    max_tokens: int


@dataclass(frozen=True)
class EngineFacts:
    """An engine's own description. None is what it does not say."""

    version: str | None = None
    priority_scheduling: bool | None = None
    lowest_priority_first: bool | None = None
    cache_report: bool | None = None
    """Whether usage carries cached tokens."""
    context_tokens: int | None = None
    pool_tokens: int | None = None
    """KV tokens that one request can come to hold: of one rank, where there are several."""
    input_bound_tokens: int | None = None
    """SGLang's `max_req_input_len`: a prompt must be shorter."""
    page_tokens: int | None = None
    running_max: int | None = None
    """Sequences that it runs at a time, over all its ranks."""
    simulated: bool | None = None
    """Whether its figures are a simulator's; only Weir's own engines say."""

    @property
    def priority_order(self) -> PriorityOrder | None:
        """None where the engine does not schedule by priority, or does not say so."""
        if not self.priority_scheduling:
            return None
        if self.lowest_priority_first:
            return PriorityOrder.LOWEST_FIRST
        return PriorityOrder.HIGHEST_FIRST

    @property
    def _longest(self) -> int:
        """SGLang's `max_req_len`."""
        bound = self.input_bound_tokens
        return min(
            (self.context_tokens or _UNBOUNDED) - 1,
            (self.pool_tokens or _UNBOUNDED) - 1,
            _UNBOUNDED if bound is None else bound + _INPUT_MARGIN_TOKENS,
        )

    @property
    def longest_prompt(self) -> int:
        """The longest prompt that leaves room for a token. Very large where nothing is known."""
        bound = self.input_bound_tokens
        return min(self._longest - 2, _UNBOUNDED if bound is None else bound - 1)

    def output_room(self, prompt_tokens: int) -> int:
        """The most output tokens that a request with such a prompt gets; 0 where the prompt alone
        is too long. Very large where nothing is known."""
        if prompt_tokens > self.longest_prompt:
            return 0
        page = self.page_tokens or 1
        paged_prompt = -(-prompt_tokens // page) * page
        in_pages = (self.pool_tokens or _UNBOUNDED) - paged_prompt - page - 1
        return max(0, min(self._longest - prompt_tokens - 1, in_pages))

    def holds(self, need: Need) -> bool:
        """Whether the engine would run such a sequence as asked: neither refused nor cut down."""
        return need.max_tokens <= self.output_room(need.prompt_tokens)


NOTHING_KNOWN = EngineFacts()
"""Of an engine that says nothing of itself, or has not been asked yet."""


def engine_priority(request_class: RequestClass, facts: EngineFacts) -> int | None:
    """The `priority` that puts interactive before batch on this engine; None: send none (an engine
    without priorities may refuse the field).

    The gap of 1 stays below SGLang's preemption threshold of 10: a batch request that runs is not
    evicted and computed again, it is only overtaken in the queue.
    """
    order = facts.priority_order
    if order is None:
        return None
    first = request_class is RequestClass.INTERACTIVE
    return int(first) if order is PriorityOrder.HIGHEST_FIRST else int(not first)

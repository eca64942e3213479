"""What the scheduler keeps of a request beside the request itself."""

import sys

from backend.simulated.flags import SchedulerFlags
from backend.simulated.radix_cache import Node
from backend.simulated.request import TOKEN_BYTES, SimulatedRequest


class Place:
    """A request's place in the queue, then in the batch; it comes back to the queue if it loses
    the batch's. Sizes are tokens."""

    __slots__ = (
        "aborting",
        "computed_tokens",
        "decoding",
        "ends_at",
        "entered",
        "ids",
        "inserted_tokens",
        "lost_place",
        "matched_tokens",
        "node",
        "priority",
        "prompt_tokens",
        "protected_tokens",
        "request",
        "waiting",
    )

    def __init__(self, request: SimulatedRequest, flags: SchedulerFlags) -> None:
        self.request = request
        self.prompt_tokens = len(request.prompt) // TOKEN_BYTES
        self.ids = request.prompt
        """What its prefill computes: the prompt, and what it had generated before."""
        self.priority = _preference(request, flags)
        """The lower the better."""
        self.entered = 0
        """Its number among all entries to the queue."""
        self.matched_tokens = 0
        """What the cache held of it when the queue was last ordered by that."""
        most = request.max_new_tokens
        self.ends_at = most if request.ignore_eos else min(request.ends_after, most)
        self.waiting = False
        self.aborting = False
        self.lost_place = False
        """Whether it ran before."""
        self.node: Node | None = None
        self.inserted_tokens = 0
        """What it has put into the cache since it last entered the queue."""
        self.protected_tokens = 0
        self.computed_tokens = 0
        self.decoding = False

    @property
    def text_tokens(self) -> int:
        """Prompt and what was generated."""
        return self.prompt_tokens + self.request.generated

    @property
    def kv_tokens(self) -> int:
        """What stands in the KV cache for it between two steps: the last token does not yet."""
        return self.text_tokens - 1 if self.decoding else self.computed_tokens

    def text(self, tokens: int) -> bytes:
        """At least its first so many token ids."""
        if tokens * TOKEN_BYTES > len(self.ids):
            return self.request.prompt + self.request.output_ids(tokens - self.prompt_tokens)
        return self.ids

    def enter_queue(self, entered: int) -> None:
        """It waits, to have everything known of it computed."""
        self.waiting = True
        self.entered = entered
        self.matched_tokens = 0
        generated = self.request.generated
        self.ids = self.request.prompt
        if generated:
            self.ids += self.request.output_ids(generated)

    def leave(self) -> None:
        """It holds nothing any more."""
        self.node = None
        self.inserted_tokens = self.protected_tokens = self.computed_tokens = 0
        self.decoding = False


def _preference(request: SimulatedRequest, flags: SchedulerFlags) -> int:
    if not flags.enable_priority_scheduling:
        return 0
    if request.priority is None:
        return sys.maxsize
    return request.priority if flags.schedule_low_priority_values_first else -request.priority

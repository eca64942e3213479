"""What an engine has counted since its process began: the witness of what is metered.

What each count covers, as measured, is in `docs/sglang.md`. Above all: a sequence is in none of
them before it has ended.
"""

from typing import NamedTuple


class EngineCounters(NamedTuple):
    """One reading. None is what the engine does not tell, or has not counted yet."""

    mark: str | None = None
    """Of the process: another one has another; None where nothing tells."""
    running: int | None = None
    """Sequences that ran at the moment of reading."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    requests: int | None = None
    aborted: int | None = None
    health: int | None = None
    """How often `/health` was answered; its tokens are in no other count."""


COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens", "requests", "aborted", "health")
"""Those that only grow."""


def begins_again(before: EngineCounters, now: EngineCounters) -> bool:
    """Whether another process counts: its mark is another, or a count fell or is no longer there.
    Counts of two processes are never subtracted from each other."""
    if before.mark is not None and now.mark is not None and before.mark != now.mark:
        return True
    for name in COUNTS:
        was, is_now = getattr(before, name), getattr(now, name)
        if was is not None and (is_now is None or is_now < was):
            return True
    return False

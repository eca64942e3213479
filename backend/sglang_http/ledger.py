"""The worker's own account of every sequence it ran: the witness that bills are checked against.

Only the engine writes it, from what it generated itself; nothing of a prompt is in it.
"""

import time
from collections import deque
from itertools import islice

import msgspec

from backend.sglang_http.generation import FinishReason, Usage

ENTRIES_MAX = 200_000
PAGE_MAX = 10_000


class LedgerEntry(msgspec.Struct, frozen=True):
    """One ended sequence. Times are Unix milliseconds (UTC)."""

    rid: str
    prompt_tokens: int
    cached_tokens: int | None
    """None where the engine did not report it."""
    completion_tokens: int
    finish_reason: str
    """`stop`, `length`, `abort`, or `error` where the engine broke."""
    queued_at_ms: int
    started_at_ms: int | None
    """When it entered its prompt step; None where it never left the queue."""
    ended_at_ms: int
    running_at_start: int | None
    """Sequences running once it had started, itself included."""
    first_token_ms: int | None = None
    priority: int | None = None
    retractions: int = 0
    """How often it lost its place and was computed again."""
    health: bool = False
    """The worker asked itself, for `/health`."""


class LedgerPage(msgspec.Struct, frozen=True):
    """Entries from a cursor on. `oldest` is the first number still kept."""

    entries: list[LedgerEntry]
    next: int
    oldest: int
    running: int
    running_peak: int
    weir_engine: str = ""
    """The name of the engine that ran them: whether all this is simulated."""


class LedgerTotals(msgspec.Struct):
    """Sums over everything ever recorded, also what the ring has dropped, but for `/health`."""

    requests: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class Ledger:
    """A bounded ring of entries, and the count of running sequences with its highest value."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries: deque[LedgerEntry] = deque(maxlen=entries_max)
        self._count = 0
        self.running = 0
        self.running_peak = 0
        self.totals = LedgerTotals()

    def started(self) -> int:
        """A sequence entered its prompt step. Returns how many run now."""
        self.running += 1
        self.running_peak = max(self.running_peak, self.running)
        return self.running

    def left(self) -> None:
        """A started sequence holds the engine no longer."""
        self.running -= 1

    def record(
        self,
        rid: str,
        usage: Usage,
        reason: FinishReason | None,
        *,
        queued_at_ms: int,
        started_at_ms: int | None,
        running_at_start: int | None,
        first_token_ms: int | None = None,
        priority: int | None = None,
        retractions: int = 0,
        health: bool = False,
    ) -> None:
        """A sequence ended; `reason` None where the engine broke."""
        self._count += 1
        self._entries.append(
            LedgerEntry(
                rid=rid,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                completion_tokens=usage.completion_tokens,
                finish_reason=reason.value if reason is not None else "error",
                queued_at_ms=queued_at_ms,
                started_at_ms=started_at_ms,
                ended_at_ms=now_ms(),
                running_at_start=running_at_start,
                first_token_ms=first_token_ms,
                priority=priority,
                retractions=retractions,
                health=health,
            )
        )
        if not health:
            self._sum(usage, aborted=reason is FinishReason.ABORT)

    def _sum(self, usage: Usage, *, aborted: bool) -> None:
        self.totals.requests += 1
        self.totals.aborted += aborted
        self.totals.prompt_tokens += usage.prompt_tokens
        self.totals.cached_tokens += usage.cached_tokens or 0
        self.totals.completion_tokens += usage.completion_tokens

    def page(self, since: int) -> LedgerPage:
        """Entries numbered `since` and later, at most PAGE_MAX; ask again from `next`."""
        oldest = self._count - len(self._entries)
        first = min(max(since, oldest), self._count)
        entries = list(islice(self._entries, first - oldest, first - oldest + PAGE_MAX))
        return LedgerPage(
            entries=entries,
            next=first + len(entries),
            oldest=oldest,
            running=self.running,
            running_peak=self.running_peak,
        )


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000

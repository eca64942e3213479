"""The worker's own account of every sequence it ran: the witness that bills are checked against.

Only the engine writes it, from what it generated itself; nothing of a prompt is in it.
"""

import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

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
    stream: bool = False


class LedgerPage(msgspec.Struct, frozen=True):
    """Entries from a cursor on. `oldest` is the first number still kept."""

    entries: list[LedgerEntry]
    next: int
    oldest: int
    running: int
    running_peak: int
    weir_engine: str = ""
    """The name of the engine that ran them: whether all this is simulated."""
    unwritten: int = 0
    """Entries that the ledger's file did not take: another life will not know them."""


class LedgerTotals(msgspec.Struct):
    """Sums of this life, also over what the ring has dropped. As SGLang's counters, they count what
    has ended and had left the queue; not `/health`, and not what was aborted while it waited."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "LedgerTotals") -> "LedgerTotals":
        return LedgerTotals(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )


class Kept(Protocol):
    """Where entries outlive the process; see `ledger_file.LedgerFile`."""

    @property
    def entries(self) -> Sequence[LedgerEntry]: ...
    def append(self, entry: LedgerEntry) -> bool: ...


class Ledger:
    """A bounded ring of entries, and the count of running sequences with its highest value."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries: deque[LedgerEntry] = deque(maxlen=entries_max)
        self._count = 0
        self.running = 0
        self.running_peak = 0
        self.aborts = 0
        """How often somebody asked to abort: once for each live rid, once for all together."""
        self.streamed = LedgerTotals()
        self.whole = LedgerTotals()
        """Of answers that were no streams."""
        self._kept: Kept | None = None
        self._unwritten = 0

    @property
    def totals(self) -> LedgerTotals:
        """Of both."""
        return self.streamed + self.whole

    def keep(self, kept: Kept) -> None:
        """Before anything is recorded: take over the entries of earlier lives, and keep those of
        this one beside them. The sums stay those of this life."""
        self._entries.extend(kept.entries)
        self._count = len(kept.entries)
        self._kept = kept

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
        stream: bool = False,
    ) -> None:
        """A sequence ended; `reason` None where the engine broke."""
        self._count += 1
        entry = LedgerEntry(
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
            stream=stream,
        )
        self._entries.append(entry)
        if self._kept is not None and not self._kept.append(entry):
            self._unwritten += 1
        if started_at_ms is not None and not health:
            self._sum(usage, self.streamed if stream else self.whole)

    def _sum(self, usage: Usage, totals: LedgerTotals) -> None:
        totals.requests += 1
        totals.prompt_tokens += usage.prompt_tokens
        totals.cached_tokens += usage.cached_tokens or 0
        totals.completion_tokens += usage.completion_tokens

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
            unwritten=self._unwritten,
        )


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000

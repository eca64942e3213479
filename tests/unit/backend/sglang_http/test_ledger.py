"""The ledger's ring, cursor and counts."""

from backend.sglang_http.generation import FinishReason, Usage
from backend.sglang_http.ledger import Ledger, LedgerTotals


def fill(ledger: Ledger, count: int, first: int = 0) -> None:
    """Record sequences that generated as many tokens as their number."""
    for number in range(first, first + count):
        ledger.record(
            f"r{number}",
            Usage(10, number, 3 if number % 2 else None),
            FinishReason.ABORT if number % 5 == 0 else FinishReason.STOP,
            queued_at_ms=1,
            started_at_ms=2,
            running_at_start=1,
        )


def test_cursor() -> None:
    """From each page's `next` on, every entry is seen once."""
    ledger = Ledger()
    fill(ledger, 3)
    page = ledger.page(0)
    assert [entry.rid for entry in page.entries] == ["r0", "r1", "r2"]
    assert ledger.page(page.next).entries == []
    fill(ledger, 2, first=3)
    assert [entry.rid for entry in ledger.page(page.next).entries] == ["r3", "r4"]
    assert ledger.page(10**9).next == 5


def test_ring() -> None:
    """Beyond its size the oldest are dropped, and the page says so; the totals keep them."""
    ledger = Ledger(entries_max=4)
    fill(ledger, 10)
    page = ledger.page(0)
    assert (page.oldest, page.next) == (6, 10)
    assert [entry.completion_tokens for entry in page.entries] == [6, 7, 8, 9]
    assert ledger.totals.requests == 10
    assert ledger.totals.prompt_tokens == 100
    assert ledger.totals.completion_tokens == 45
    assert ledger.totals.cached_tokens == 15


def test_running_peak() -> None:
    """The peak is the most that ever ran together."""
    ledger = Ledger()
    assert [ledger.started(), ledger.started()] == [1, 2]
    ledger.left()
    assert ledger.started() == 2
    ledger.left()
    ledger.left()
    page = ledger.page(0)
    assert (page.running, page.running_peak) == (0, 2)


def test_what_the_sums_leave_out() -> None:
    """As SGLang's counters: what never left the queue and `/health` are entries, and in no sum;
    streams are summed apart."""
    ledger = Ledger()
    usage = Usage(10, 4, 0)
    reason = FinishReason.STOP
    for started_at_ms, health, stream in ((2, False, True), (None, False, True), (2, True, False)):
        ledger.record(
            "r",
            usage,
            reason,
            queued_at_ms=1,
            started_at_ms=started_at_ms,
            running_at_start=1,
            health=health,
            stream=stream,
        )
    assert len(ledger.page(0).entries) == 3
    assert ledger.streamed == LedgerTotals(1, 10, 0, 4)
    assert ledger.whole == LedgerTotals()
    assert ledger.totals == LedgerTotals(1, 10, 0, 4)

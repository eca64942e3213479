"""The trailing window of tokens and requests: one-second cells, 61 of them (INV-3).

A cell covers `[s, s + 1)` and counts until its *end* is 60 s old, that is while `now < s + 61`. So
in any trailing 60 s, at any offset, what was charged lies in counted cells: the sum of the cells
never under-counts, and a bound on the sum is a bound on every trailing 60 s.

The clock is the store's. It may step back: by up to `STANDSTILL_S` the window waits at its newest
cell; by more, all that it holds is charged again to the present second, and nothing is refunded to
a second that the old time had already reached: its cell may since bear others' charges. Nobody can
tell which of the two times is wrong. So when the clock is where it was again, by passing or by a
jump, what was charged meanwhile, by a time that may have been wrong, is charged once more to the
present second. All of that counts charges longer than needed, never shorter.
"""

from dataclasses import dataclass, field

WINDOW_CELLS = 61
STANDSTILL_S = 5


@dataclass
class Cell:
    """What was charged in one second."""

    tokens: int = 0
    requests: int = 0


@dataclass
class Window:
    """The charges of one scope, by second."""

    cells: dict[int, Cell] = field(default_factory=dict)
    reached_s: int = 0
    """The newest second of a time that was stepped back from; up to it nothing is refunded."""

    def advance(self, now_ms: int) -> int:
        """Drop what is too old and return the second that charges go to now."""
        now_s = now_ms // 1000
        newest_s = max(self.cells, default=now_s)
        if newest_s > now_s:
            if newest_s - now_s <= STANDSTILL_S:
                now_s = newest_s
            else:
                self._charge_all(now_s)
                self.reached_s = max(self.reached_s, newest_s)
        elif newest_s < self.reached_s <= now_s:
            self._charge_all(now_s)
        self.cells = {s: cell for s, cell in self.cells.items() if s > now_s - WINDOW_CELLS}
        if self.reached_s <= now_s - WINDOW_CELLS:
            self.reached_s = 0
        return now_s

    def _charge_all(self, second: int) -> None:
        self.cells = {second: Cell(self.tokens, self.requests)}

    @property
    def tokens(self) -> int:
        """Tokens charged in the window. Call `advance` first."""
        return sum(cell.tokens for cell in self.cells.values())

    @property
    def requests(self) -> int:
        """Requests admitted in the window. Call `advance` first."""
        return sum(cell.requests for cell in self.cells.values())

    def charge(self, second: int, *, tokens: int, requests: int) -> None:
        """Add to a second's cell, which `advance` returned."""
        cell = self.cells.setdefault(second, Cell())
        cell.tokens += tokens
        cell.requests += requests

    def refund(self, second: int, *, tokens: int, requests: int) -> None:
        """Take back from the cell that was charged; what is no longer there is dropped."""
        cell = self.cells.get(second)
        if cell is not None and second > self.reached_s:
            cell.tokens -= tokens
            cell.requests -= requests
            if cell.tokens == cell.requests == 0:
                del self.cells[second]

    def wait_ms(self, now_ms: int, *, excess_tokens: int = 0, excess_requests: int = 0) -> int:
        """Until at least so much has aged out: the `retry-after` of a refusal, computed.

        Where all that ages out is not enough (a running request's reservation is what blocks), the
        instant at which the window is empty.
        """
        freed_tokens = freed_requests = 0
        second = now_ms // 1000
        for second in sorted(self.cells):
            freed_tokens += self.cells[second].tokens
            freed_requests += self.cells[second].requests
            if freed_tokens >= excess_tokens and freed_requests >= excess_requests:
                break
        return max(1, (second + WINDOW_CELLS) * 1000 - now_ms)

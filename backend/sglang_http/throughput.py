"""Output tokens per second over the last few seconds."""

import time

WINDOW_S = 5


class Throughput:
    """Counts tokens in cells of a second."""

    def __init__(self) -> None:
        self._cells: dict[int, int] = {}
        self.total = 0
        """All tokens so far."""

    def add(self, tokens: int) -> None:
        """So many tokens were generated now."""
        self.total += tokens
        second = int(time.monotonic())
        self._cells[second] = self._cells.get(second, 0) + tokens
        if len(self._cells) > 2 * WINDOW_S:
            self._cells = {cell: n for cell, n in self._cells.items() if cell > second - WINDOW_S}

    def per_second(self) -> float:
        """The mean over the window that ends now."""
        second = int(time.monotonic())
        return sum(n for cell, n in self._cells.items() if cell > second - WINDOW_S) / WINDOW_S

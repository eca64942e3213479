"""How long requests took, as histograms that cost next to nothing to keep."""

from bisect import bisect_left
from collections.abc import Sequence

from backend.sglang_http.generation import Course

LONG_S = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
SHORT_S = (
    *(0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)


class Histogram:
    """Counts of values by upper bound, in seconds."""

    def __init__(self, bounds_s: Sequence[float]) -> None:
        self.bounds_s = tuple(bounds_s)
        self._counts = [0] * (len(self.bounds_s) + 1)
        self.sum_s = 0.0

    def observe(self, value_s: float, times: int = 1) -> None:
        """This value was seen so often."""
        self._counts[bisect_left(self.bounds_s, value_s)] += times
        self.sum_s += value_s * times

    @property
    def count(self) -> int:
        """Values seen."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Prometheus's: upper bounds and how many lie at or below each, `+Inf` last."""
        seen, buckets = 0, []
        for bound, count in zip((*self.bounds_s, "+Inf"), self._counts, strict=True):
            seen += count
            buckets.append((str(bound), float(seen)))
        return buckets


class Latencies:
    """The four that SGLang shows. Empty ones are not shown."""

    def __init__(self, speed: float = 1.0) -> None:
        """`speed`: how many seconds the engine's own clock makes of a real one; what is kept is in
        its seconds."""
        self._speed = speed
        self.first_token = Histogram(LONG_S)
        self.inter_token = Histogram(SHORT_S)
        self.end_to_end = Histogram(LONG_S)
        self.queue = Histogram(SHORT_S)

    def note(self, course: Course) -> None:
        """A request ended."""
        for histogram, took_s in (
            (self.first_token, course.first_token_s),
            (self.end_to_end, course.end_to_end_s),
            (self.queue, course.queue_s),
        ):
            if took_s is not None:
                histogram.observe(took_s * self._speed)

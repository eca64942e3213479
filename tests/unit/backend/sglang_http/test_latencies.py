"""Histograms of how long requests took."""

from backend.sglang_http.generation import Course
from backend.sglang_http.latencies import Histogram, Latencies

S = 1_000_000_000


def test_buckets_are_cumulative() -> None:
    """A value on a bound lies below it; many alike cost one call."""
    histogram = Histogram((0.1, 1.0))
    for value, times in ((0.1, 2), (0.5, 3), (7.0, 1)):
        histogram.observe(value, times)
    assert histogram.buckets() == [("0.1", 2.0), ("1.0", 5.0), ("+Inf", 6.0)]
    assert histogram.count == 6
    assert abs(histogram.sum_s - 8.7) < 1e-9


def test_a_course_in_the_engines_time() -> None:
    """Each instant once; what a request never came to is not counted; a fast clock counts more."""
    latencies = Latencies(speed=4.0)
    latencies.note(Course(queued_ns=0, entered_ns=S, started_ns=2 * S, first_token_ns=3 * S))
    latencies.note(Course(queued_ns=0, ended_ns=S))
    assert (latencies.queue.count, latencies.queue.sum_s) == (1, 4.0)
    assert (latencies.first_token.count, latencies.first_token.sum_s) == (1, 12.0)
    assert (latencies.end_to_end.count, latencies.end_to_end.sum_s) == (1, 4.0)
    assert latencies.inter_token.count == 0

"""The hours that were paid for: spans of time, each with GPU-milliseconds, and how these lie over
the hours of the day. All times are Unix milliseconds and days those of UTC."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
HOURS = 24


class PaidSpan(NamedTuple):
    """Time from `start_ms` on and before `end_ms`, paid for evenly."""

    start_ms: int
    end_ms: int
    gpu_ms: int


class PaidTime(NamedTuple):
    """All that was paid for: spans, by which the bill is shared out, and the GPU-milliseconds of
    each hour of the day, which may be known better than by span."""

    spans: tuple[PaidSpan, ...]
    by_hour: tuple[Fraction, ...]
    by_day: bool
    """Each span is a day, or a part of one; else there is one."""

    @property
    def gpu_ms(self) -> int:
        """All of it."""
        return sum(span.gpu_ms for span in self.spans)


def paid_evenly(start_ms: int, end_ms: int, gpu_ms: int) -> PaidTime:
    """So much over the whole time, as much in any hour as in any other."""
    span = PaidSpan(start_ms, end_ms, gpu_ms)
    return PaidTime((span,), _by_hour([span]), by_day=False)


def paid_by_day(start_ms: int, end_ms: int, gpu_ms_of_day: Mapping[int, int]) -> PaidTime:
    """So much each day (numbered from 1970-01-01), evenly within it."""
    spans = tuple(
        PaidSpan(start, end, gpu_ms_of_day.get(day, 0))
        for day, start, end in _days(start_ms, end_ms)
    )
    return PaidTime(spans, _by_hour(spans), by_day=True)


class SeenAlive(NamedTuple):
    """A worker that was there from `start_ms` to `end_ms`."""

    worker_id: str
    start_ms: int
    end_ms: int


def paid_while_seen(
    start_ms: int, end_ms: int, seen: Iterable[SeenAlive], *, gpus: Fraction
) -> PaidTime:
    """As long as workers were seen, each with so many GPUs. A day's GPU time is cut to a whole
    millisecond."""
    worker_ms_of_day: defaultdict[int, int] = defaultdict(int)
    by_hour = [Fraction(0)] * HOURS
    for each in seen:
        first, last = max(each.start_ms, start_ms), min(each.end_ms, end_ms)
        for day, start, end in _days(first, last):
            worker_ms_of_day[day] += end - start
        for hour, overlap_ms in _hours(first, last):
            by_hour[hour] += overlap_ms * gpus
    gpu_ms = {day: int(worker_ms * gpus) for day, worker_ms in worker_ms_of_day.items()}
    spans = paid_by_day(start_ms, end_ms, gpu_ms).spans
    return PaidTime(spans, tuple(by_hour), by_day=True)


def day_of(at_ms: int) -> int:
    """The day's number from 1970-01-01."""
    return at_ms // DAY_MS


def _days(start_ms: int, end_ms: int) -> Iterator[tuple[int, int, int]]:
    """Each day that is touched, with the part of it from start to end."""
    for day in range(day_of(start_ms), day_of(max(start_ms, end_ms - 1)) + 1):
        start, end = max(start_ms, day * DAY_MS), min(end_ms, (day + 1) * DAY_MS)
        if start < end:
            yield day, start, end


def _by_hour(spans: Iterable[PaidSpan]) -> tuple[Fraction, ...]:
    found = [Fraction(0)] * HOURS
    for span in spans:
        for hour, overlap_ms in _hours(span.start_ms, span.end_ms):
            found[hour] += Fraction(span.gpu_ms * overlap_ms, span.end_ms - span.start_ms)
    return tuple(found)


def _hours(start_ms: int, end_ms: int) -> Iterator[tuple[int, int]]:
    """How many milliseconds of the time lie in each hour of the day. Whole days are not walked
    through one by one."""
    if end_ms <= start_ms:
        return
    whole_days = (end_ms - start_ms) // DAY_MS
    if whole_days:
        for hour in range(HOURS):
            yield hour, whole_days * HOUR_MS
    at = start_ms + whole_days * DAY_MS
    while at < end_ms:
        until = min((at // HOUR_MS + 1) * HOUR_MS, end_ms)
        yield at // HOUR_MS % HOURS, until - at
        at = until

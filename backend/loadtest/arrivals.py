"""When requests are sent: all times are drawn before the run, in milliseconds since its start.

Every generator here is endless and rises; whoever asks takes what its run has room for.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from backend.loadtest.workload_error import WorkloadError

_NUMBER = r"(\d+(?:\.\d+)?)"
_GAMMA = re.compile(rf"gamma:{_NUMBER}")
_ON_OFF = re.compile(rf"onoff:{_NUMBER},{_NUMBER},{_NUMBER}")


@dataclass(frozen=True, slots=True)
class GammaGaps:
    """Independent gaps of this coefficient of variation: 1 is Poisson, more comes in clumps."""

    cv: float

    def __post_init__(self) -> None:
        """Raise WorkloadError where nothing could be drawn."""
        if not 0.05 <= self.cv <= 20:
            raise WorkloadError(f"a coefficient of variation of {self.cv:g}: it is 0.05 to 20")

    def __str__(self) -> str:
        """As `parse_bursts` reads it."""
        return f"gamma:{self.cv:g}"

    def times_ms(self, rate_rps: float, rng: random.Random) -> Iterator[float]:
        """The first gap is one that a start at any moment finds under way. Counted from an
        arrival instead, a run would be sent (cv² - 1) / 2 requests too many."""
        shape, scale_ms = self.cv**-2, self.cv**2 * 1000 / rate_rps
        at_ms = rng.gammavariate(shape + 1, scale_ms) * rng.random()
        while True:
            yield at_ms
            at_ms += rng.gammavariate(shape, scale_ms)


@dataclass(frozen=True, slots=True)
class OnOff:
    """Poisson at `factor` times the mean rate for `on_s` seconds, after `off_s` seconds of what is
    left of the mean. The quiet comes first; whole cycles keep the mean."""

    factor: float
    on_s: float
    off_s: float

    def __post_init__(self) -> None:
        """Raise WorkloadError where the mean cannot be kept."""
        if not (self.factor >= 1 and self.on_s > 0 and self.off_s > 0):
            raise WorkloadError(
                f"bursts of {self.factor:g} times the mean, {self.on_s:g} s on and "
                f"{self.off_s:g} s off: the factor is at least 1 and both times are above 0"
            )
        if self.factor * self.on_s > (self.on_s + self.off_s) * (1 + 1e-9):
            raise WorkloadError(
                f"bursts of {self.factor:g} times the mean for {self.on_s:g} s in every "
                f"{self.cycle_s:g} s are more than the mean: at most "
                f"{self.cycle_s / self.on_s:g} times fit"
            )

    @property
    def cycle_s(self) -> float:
        """One quiet time and one burst."""
        return self.on_s + self.off_s

    def __str__(self) -> str:
        """As `parse_bursts` reads it."""
        return f"onoff:{self.factor:g},{self.on_s:g},{self.off_s:g}"

    def times_ms(self, rate_rps: float, rng: random.Random) -> Iterator[float]:
        """A Poisson process in a time that runs fast in a burst and slowly outside."""
        cycle_ms, off_ms = self.cycle_s * 1000, self.off_s * 1000
        expected_off = max(0.0, cycle_ms - self.factor * self.on_s * 1000)
        for even_ms in poisson_times_ms(rate_rps, rng):
            cycles, rest = divmod(even_ms, cycle_ms)
            if rest < expected_off:
                inside_ms = rest / expected_off * off_ms
            else:
                inside_ms = off_ms + (rest - expected_off) / self.factor
            yield cycles * cycle_ms + inside_ms


Bursts = GammaGaps | OnOff


def parse_bursts(text: str) -> Bursts:
    """`gamma:CV` or `onoff:FACTOR,ON_S,OFF_S`. Raises WorkloadError."""
    if found := _GAMMA.fullmatch(text):
        return GammaGaps(float(found[1]))
    if found := _ON_OFF.fullmatch(text):
        return OnOff(float(found[1]), float(found[2]), float(found[3]))
    raise WorkloadError(f"{text!r} describes no bursts: gamma:CV or onoff:FACTOR,ON_S,OFF_S")


def poisson_times_ms(rate_rps: float, rng: random.Random) -> Iterator[float]:
    """Exponential gaps. One seed gives the same pattern at every rate, only faster or slower."""
    at = 0.0
    while True:
        at += rng.expovariate(1.0)
        yield at / rate_rps * 1000


def exact_poisson_times_ms(rate_rps: float, duration_ms: float, rng: random.Random) -> list[float]:
    """A Poisson process known to have its mean number of arrivals within the duration: the offered
    rate is the one asked for, which near a knee matters more than a second digit. (Given their
    number, a Poisson process's arrivals lie as so many uniform draws do; exponential gaps scaled
    to the duration are their spacings. So one seed keeps its pattern at every rate here, too.)
    """
    gaps = [rng.expovariate(1.0) for _ in range(round(rate_rps * duration_ms / 1000) + 1)]
    scale = duration_ms / sum(gaps)
    return [at * scale for at in accumulate(gaps[:-1])]


def spread_in_buckets(
    times_ms: Sequence[float], bucket_ms: float, rng: random.Random
) -> list[float]:
    """Times that were rounded to buckets, spread evenly inside them again; their order stays."""
    spread: list[float] = []
    start = 0
    for end in range(1, len(times_ms) + 1):
        bucket = round(times_ms[start] / bucket_ms)
        if end == len(times_ms) or round(times_ms[end] / bucket_ms) != bucket:
            inside = sorted(rng.random() for _ in range(end - start))
            spread += [(bucket + share) * bucket_ms for share in inside]
            start = end
    return spread

"""Prefixes that many prompts share: how many, how popular, how long."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from backend.loadtest.lengths import SEEDLIKE_PREFIX, Lengths
from backend.loadtest.plan import Segment
from backend.loadtest.workload_error import WorkloadError

_MOST = 100_000
_WRITTEN = re.compile(r"(\d+)/(\d+(?:\.\d+)?)/(.+)")


@dataclass(frozen=True, slots=True)
class PrefixTemplates:
    """`count` shared prefixes; the one of rank r (from 1) is chosen in proportion to
    `1 / r**zipf`. The defaults are those of the `seedlike` trace; a count of 0 means none."""

    count: int = 400
    zipf: float = 1.0
    lengths: Lengths = SEEDLIKE_PREFIX

    def __post_init__(self) -> None:
        """Raise WorkloadError where nothing could be drawn."""
        if not 0 <= self.count <= _MOST or not 0 <= self.zipf <= 10:
            raise WorkloadError(
                f"{self.count} shared prefixes of Zipf exponent {self.zipf:g}: "
                f"0 to {_MOST} of them, exponent 0 to 10"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """`none`, or `COUNT/ZIPF/LENGTHS` as in `400/1.0/lognormal:1200,0.7`.

        Raises WorkloadError.
        """
        if text == "none":
            return cls(count=0)
        if found := _WRITTEN.fullmatch(text):
            return cls(int(found[1]), float(found[2]), Lengths.parse(found[3]))
        raise WorkloadError(f"{text!r} describes no shared prefixes: none or COUNT/ZIPF/LENGTHS")

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"{self.count}/{self.zipf:g}/{self.lengths}" if self.count else "none"

    def draw(self, rng: random.Random) -> "DrawnTemplates":
        """The templates themselves.

        Lognormal lengths are scaled so that their mean *as chosen* is the one asked for: the few
        popular ones decide it, and one long favourite would otherwise double every prompt.
        """
        weights = [rank**-self.zipf for rank in range(1, self.count + 1)]
        tokens = [self.lengths.draw(rng) for _ in weights]
        if self.lengths.kind == "lognormal" and tokens:
            chosen_mean = sum(w * t for w, t in zip(weights, tokens, strict=True)) / sum(weights)
            scale = self.lengths.mean / chosen_mean
            low, high = self.lengths.low, self.lengths.high
            tokens = [min(max(round(t * scale), low), high) for t in tokens]
        segments = [Segment(f"prefix-{number}", t) for number, t in enumerate(tokens)]
        return DrawnTemplates(segments, list(accumulate(weights)))


SEEDLIKE_PREFIXES = PrefixTemplates()


@dataclass(frozen=True, slots=True)
class DrawnTemplates:
    """The prefixes of one workload, and their popularity summed up."""

    segments: Sequence[Segment]
    summed_weights: Sequence[float]

    def choose(self, rng: random.Random) -> int:
        """The number of one."""
        return rng.choices(range(len(self.segments)), cum_weights=self.summed_weights)[0]

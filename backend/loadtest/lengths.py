"""How many tokens: distributions of lengths, and how they are written on the command line."""

import math
import random
import re
from dataclasses import dataclass
from typing import Literal, Self

from backend.loadtest.workload_error import WorkloadError

LONGEST = 1_000_000
"""No length is drawn above this: longer than any context window served."""
_NUMBER = r"(\d+(?:\.\d+)?)"
_FIXED = re.compile(r"fixed:(\d+)")
_UNIFORM = re.compile(r"uniform:(\d+)-(\d+)")
_LOGNORMAL = re.compile(rf"lognormal:{_NUMBER},{_NUMBER}(?:,(\d+)-(\d+))?")
_GRAMMAR = "fixed:N, uniform:A-B or lognormal:MEAN,SIGMA[,MIN-MAX]"


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts, all between `low` and `high`.

    `mean` and `sigma` are of a lognormal only: the mean of what is drawn before it is clipped, and
    the standard deviation of its logarithm.
    """

    kind: Literal["fixed", "uniform", "lognormal"]
    low: int
    high: int
    mean: float = 0.0
    sigma: float = 0.0

    def __post_init__(self) -> None:
        """Raise WorkloadError where nothing could be drawn."""
        if not 1 <= self.low <= self.high <= LONGEST:
            raise WorkloadError(
                f"lengths from {self.low} to {self.high}: the smallest is at least 1, "
                f"the largest at most {LONGEST}, and the smallest comes first"
            )
        if self.kind == "lognormal" and not (1 <= self.mean <= LONGEST and 0 <= self.sigma <= 5):
            raise WorkloadError(
                f"a lognormal of mean {self.mean:g} and sigma {self.sigma:g}: "
                f"the mean is 1 to {LONGEST}, sigma 0 to 5"
            )

    @classmethod
    def fixed(cls, tokens: int) -> Self:
        """Always the same."""
        return cls("fixed", tokens, tokens)

    @classmethod
    def lognormal(cls, mean: float, sigma: float, low: int = 1, high: int = LONGEST) -> Self:
        """Of this mean before clipping."""
        return cls("lognormal", low, high, float(mean), float(sigma))

    @classmethod
    def parse(cls, text: str) -> Self:
        """As written on the command line. Raises WorkloadError."""
        if found := _FIXED.fullmatch(text):
            return cls.fixed(int(found[1]))
        if found := _UNIFORM.fullmatch(text):
            return cls("uniform", int(found[1]), int(found[2]))
        if found := _LOGNORMAL.fullmatch(text):
            low, high = int(found[3] or 1), int(found[4] or LONGEST)
            return cls.lognormal(float(found[1]), float(found[2]), low, high)
        raise WorkloadError(f"{text!r} is no distribution of lengths: {_GRAMMAR}")

    def __str__(self) -> str:
        """As `parse` reads it."""
        if self.kind == "fixed":
            return f"fixed:{self.low}"
        if self.kind == "uniform":
            return f"uniform:{self.low}-{self.high}"
        return f"lognormal:{self.mean:g},{self.sigma:g},{self.low}-{self.high}"

    def draw(self, rng: random.Random) -> int:
        """One length."""
        if self.kind == "fixed":
            return self.low
        if self.kind == "uniform":
            return rng.randint(self.low, self.high)
        # exp(mu + sigma²/2) is a lognormal's mean.
        mu = math.log(self.mean) - self.sigma**2 / 2
        return min(max(round(rng.lognormvariate(mu, self.sigma)), self.low), self.high)


SEEDLIKE_SUFFIX = Lengths.lognormal(824, 1.3, 16, 32_768)
SEEDLIKE_OUTPUT = Lengths.lognormal(404, 0.9, 8, 4_096)
SEEDLIKE_PREFIX = Lengths.lognormal(1_200, 0.7, 1, 32_768)

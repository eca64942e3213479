"""How long a worker takes to serve: weights, graphs and warm-up of a large model take minutes."""

import math
import random

MEDIAN_MS = 180_000.0
P95_MS = 420_000.0
_SIGMA = math.log(P95_MS / MEDIAN_MS) / 1.6448536269514722
"""The divisor is the 95th percentile of a standard normal."""


def realistic_start_up_ms(seed: int) -> float:
    """Simulated milliseconds drawn from a log-normal distribution whose median is 180 s and whose
    95th percentile is 420 s: an assumption, fitted to nothing."""
    return random.Random(seed).lognormvariate(math.log(MEDIAN_MS), _SIGMA)  # noqa: S311 # no secret

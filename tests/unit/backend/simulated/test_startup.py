"""How long a worker takes to serve."""

from statistics import quantiles

import pytest

from backend.simulated.startup import realistic_start_up_ms


def test_the_distribution_and_the_seed() -> None:
    """Median 180 s, 95th percentile 420 s, the same for the same seed."""
    drawn = [realistic_start_up_ms(seed) for seed in range(4000)]
    cuts = quantiles(drawn, n=20)
    assert cuts[9] == pytest.approx(180_000, rel=0.05)
    assert cuts[18] == pytest.approx(420_000, rel=0.05)
    assert realistic_start_up_ms(7) == realistic_start_up_ms(7)

"""INV-9 through simulated replicas: backlogged tenants are served by their weights, whatever the
size of their requests and whichever gateway they come to."""

import random
from itertools import count

import pytest
from virtual_gateway import Flight, VirtualGateways, Waits

from backend.loadtest.plan import PlannedRequest, Segment
from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.scheduler_options import flags_of
from gateway.domain.queue.ceilings import NO_CEILING, Ceilings

WEIGHTS = {"small": 1, "large": 1, "mixed": 1, "double": 2, "fourfold": 4}
SMALL, LARGE = 1, 80
"""So many times 100 prompt tokens and 25 output tokens."""
SIZES = {
    "small": (SMALL, SMALL),
    "large": (LARGE, LARGE),
    "mixed": (SMALL, LARGE),
    "double": (SMALL, 10),
    "fourfold": (10, LARGE),
}
RUNNING = 60
BACKLOG = 70
"""Requests of each tenant that wait or run: more than can run, so each always has some waiting."""
WARMUP_MS, TEN_MINUTES_MS = 60_000.0, 600_000.0


@pytest.mark.timeout(300)
def test_shares_are_within_5_percent_of_weights_over_ten_minutes() -> None:
    """Five tenants of weights 1, 1, 1, 2, 4, sizes differing 80-fold, three gateways."""
    chance, numbers = random.Random(9), count()  # noqa: S311 - a schedule, no secret
    gateways = VirtualGateways(
        DEFAULT_PROFILE,
        flags_of(DEFAULT_PROFILE, {}),
        gateways=3,
        fixed=Ceilings(RUNNING, RUNNING, NO_CEILING),
        waits=Waits(interactive_ms=10**9),
        weights=WEIGHTS,
        window_ms=(WARMUP_MS, WARMUP_MS + TEN_MINUTES_MS),
    )
    enterings = set[tuple[str, int]]()

    def ask(tenant: str) -> None:
        number = next(numbers)
        low, high = SIZES[tenant]
        size = round(low * (high / low) ** chance.random())
        prompt = (Segment(f"own-{number}", 100 * size),)
        enterings.add((tenant, number % 3))
        now_ms = gateways.fleet.now_ms
        gateways.plan(PlannedRequest(number, now_ms, tenant, "interactive", prompt, 25 * size))

    def again(flight: Flight) -> None:
        ask(flight.planned.tenant)

    gateways.left = again
    for tenant in WEIGHTS:
        for _ in range(BACKLOG):
            ask(tenant)
    gateways.fleet.run(WARMUP_MS + TEN_MINUTES_MS)

    served = gateways.counted.weighted
    total, weights = sum(served.values()), sum(WEIGHTS.values())
    off = {
        tenant: served[tenant] / total / (weight / weights) - 1
        for tenant, weight in WEIGHTS.items()
    }
    assert max(map(abs, off.values())) < 0.05, off
    assert len(enterings) == 3 * len(WEIGHTS)
    assert gateways.counted.refused == 0

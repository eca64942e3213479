"""The mix that Weir was asked for, on one simulated replica: where its knee lies, and what moves
it. The trace is not in the repository; drawn requests of the same lengths and sharing are."""

from functools import cache

import pytest

from backend.loadtest.summarise import summarise
from backend.loadtest.summary import Summary
from backend.loadtest.virtual_target import run_virtual
from backend.loadtest.workload import WorkloadSpec, read_workload
from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.scheduler_options import flags_of

DURATION_S = 500.0
WARMUP_MS = 200_000.0


@cache
def measured(rate_rps: float, policy: str) -> Summary:
    """One run on the virtual clock."""
    spec = WorkloadSpec("poisson", rate_rps=rate_rps, duration_s=DURATION_S, seed=1)
    flags = flags_of(DEFAULT_PROFILE, {"radix_eviction_policy": policy})
    return summarise(run_virtual(read_workload(spec), DEFAULT_PROFILE, flags), None, WARMUP_MS)


def test_the_knee_lies_between_5_and_8() -> None:
    """On either side of it, also for a seed whose prompts are longer than most; and 8,000 output
    tokens a second are far away."""
    below, above = measured(5.0, "slru"), measured(8.0, "slru")
    assert below.all.goodput.tpot_met_share > 0.95
    assert above.all.goodput.tpot_met_share < 0.7
    assert below.all.tpot is not None
    assert above.all.tpot is not None
    assert below.all.tpot.p95_ms < 40 < above.all.tpot.p95_ms
    assert 2500 < above.tokens.output_tokens_per_s < 4000


def test_keeping_what_many_began_with_is_worth_more_than_keeping_what_was_last() -> None:
    """The hit rate is nearer to the ideal, and the replica faster."""
    protected, recent = measured(6.0, "slru"), measured(6.0, "lru")
    hits = [each.hit_rate.window_share for each in (protected, recent)]
    assert hits[0] is not None
    assert hits[1] is not None
    assert hits[0] > hits[1] + 0.05
    assert protected.all.tpot is not None
    assert recent.all.tpot is not None
    assert protected.all.tpot.p95_ms < 0.95 * recent.all.tpot.p95_ms


@pytest.mark.parametrize("policy", ["slru", "lru"])
def test_memory_does_not_bind_at_the_knee(policy: str) -> None:
    """Latency does: less than half of the KV pool is locked."""
    (worker,) = measured(6.0, policy).fleet.workers
    assert 0.2 < worker.kv_used_max_share < 0.5

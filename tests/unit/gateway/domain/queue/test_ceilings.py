"""Memory and where the latency ceilings begin."""

import pytest

from gateway.domain.queue.ceilings import (
    NO_CEILING,
    EngineFacts,
    StepConstants,
    batch_start,
    memory_ceiling,
)

H100X4_70B_FP8 = StepConstants(11.07, 0.0463, 3.0e-5)
"""As `backend.simulated.profiles` has it."""


def test_memory_is_the_engines_tokens_less_a_twentieth() -> None:
    assert memory_ceiling(EngineFacts(kv_tokens=640_000)) == 608_000


def test_an_engine_that_does_not_tell_its_memory_has_no_ceiling_of_it() -> None:
    """None is not 0, which would let nothing run."""
    assert memory_ceiling(EngineFacts()) == NO_CEILING


def test_batch_stops_where_the_replica_model_says() -> None:
    """Its own example: 81 at 40 ms with 32 % of the time spent on prefill, context 2,200."""
    found = batch_start(H100X4_70B_FP8, tpot_us=40_000, context_tokens=2_200, prefill_share=0.32)
    assert found in (80, 81)


def test_a_target_below_an_empty_step_begins_at_one() -> None:
    assert batch_start(H100X4_70B_FP8, tpot_us=9_000, context_tokens=2_200, prefill_share=0.3) == 1


@pytest.mark.parametrize(
    ("asked", "running_max", "given"), [(128, None, 128), (128, 96, 96), (0, 96, 1), (5, 0, 5)]
)
def test_no_ceiling_is_above_what_the_engine_runs(
    asked: int, running_max: int | None, given: int
) -> None:
    """And none is below one. An engine that says 0 has no limit of its own."""
    assert EngineFacts(running_max=running_max).bounded(asked) == given

"""Done when 1 of the queue, shorter: interactive goodput over batch with ceilings learned live.
`benchmarks/queue_goodput.py` has the whole table."""

from functools import cache

import pytest
from virtual_goodput import Figures, Load, one_run, requests

from gateway.domain.queue.ceilings import START

DURATION_S, WARMUP_S = 260.0, 110.0
SEEDS = (1, 2)


@cache
def measured(load: str, control: str, seed: int, start: int = START) -> Figures:
    """One run on the virtual clock. `start`: where batch may stop before anything is learned."""
    planned = requests(Load.parse(load), replicas=1, duration_s=DURATION_S, seed=seed, traces=None)
    return one_run(
        planned, control, replicas=1, duration_s=DURATION_S, warmup_s=WARMUP_S, start=start
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_interactive_meets_its_targets_while_batch_fills_the_rest(seed: int) -> None:
    """Q26: 4 interactive and 4 batch requests a second on one replica. Without a queue over the
    replica fewer than two thirds meet them."""
    uncontrolled, learned = measured("4+4", "none", seed), measured("4+4", "learned", seed)
    assert uncontrolled.goodput is not None
    assert learned.goodput is not None
    assert uncontrolled.goodput < 0.67
    assert learned.goodput >= 0.94
    assert learned.batch_tokens_per_s >= 850


def test_a_ceiling_that_was_too_high_is_found_out() -> None:
    """Twice what the replica serves in time; after the warm-up it has come down."""
    found = measured("4+4", "learned", SEEDS[0], 160)
    assert found.goodput is not None
    assert found.goodput >= 0.9
    assert found.ceiling is not None
    assert found.ceiling < 110


def test_interactive_alone_is_not_held_back() -> None:
    """The queue takes nothing from it where there is no batch."""
    seed = SEEDS[0]
    free, queued = measured("4+4", "alone", seed), measured("4+0", "learned", seed)
    assert queued.goodput is not None
    assert free.goodput is not None
    assert queued.goodput >= 0.97
    assert abs(queued.goodput - free.goodput) < 0.02

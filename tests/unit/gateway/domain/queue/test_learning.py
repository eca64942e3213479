"""How the ceilings follow TPOT, one decision at a time; and what can go wrong over many."""

from dataclasses import replace

import pytest

from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learned import Learned
from gateway.domain.queue.learning import AHEAD_MS_MAX, LatencyRule
from gateway.domain.queue.samples import Samples

RULE = LatencyRule()
FACTS = EngineFacts(kv_tokens=640_000)
START = RULE.begin(FACTS, now_ms=0, batch=80)
LATER_MS = START.since_ms + RULE.decide_ms
MET = Samples(1, counted=100, looks=10, batch_ran=10, interactive_ms=LATER_MS)
WAITED_FOR = replace(MET, batch_bound=10)


def decided(samples: Samples, learned: Learned = START, now_ms: int = LATER_MS) -> Learned:
    """What the rule makes of it; it decides something."""
    after = RULE.decide(learned, samples, FACTS, now_ms=now_ms)
    assert after is not None
    assert after.epoch == learned.epoch + 1
    return after


def test_batch_may_have_more_while_some_of_it_waits_and_all_meet_the_target() -> None:
    assert decided(WAITED_FOR).batch == 82


def test_nothing_grows_that_nothing_waits_for() -> None:
    """However long: a night without traffic proves nothing about the next morning."""
    learned, now_ms = START, LATER_MS
    for _ in range(100):
        now_ms += RULE.decide_ms
        samples = replace(MET, epoch=learned.epoch, interactive_ms=now_ms)
        learned = decided(samples, learned, now_ms)
    assert (learned.batch, learned.sequences) == (START.batch, START.sequences)


def test_nothing_changes_between_few_and_too_many() -> None:
    after = decided(replace(WAITED_FOR, over=5))
    assert (after.batch, after.sequences, after.since_ms) == (80, 160, LATER_MS)


def test_batch_is_cut_when_the_p95_is_over_the_target() -> None:
    after = decided(replace(WAITED_FOR, over=7))
    assert (after.batch, after.sequences) == (74, 160)


def test_one_sample_over_the_share_may_be_chance() -> None:
    assert decided(replace(WAITED_FOR, over=6)).batch == 80


def test_far_over_the_target_it_is_cut_by_more() -> None:
    assert decided(replace(WAITED_FOR, over=60)).batch == 68


def test_a_cut_is_given_the_time_that_it_takes_to_show() -> None:
    """7 % over leave within 7 % of a mean stay; twice that."""
    samples = replace(WAITED_FOR, over=7, ended=10, stay_ms=200_000)
    after = decided(samples)
    assert after.since_ms == LATER_MS + 2_800
    early = RULE.stretch(
        after, began_ms=after.since_ms - 1, ended_ms=after.since_ms + 10_000, tokens=10, running=90
    )
    assert early == Samples(after.epoch)


@pytest.mark.parametrize(
    "samples",
    [
        replace(WAITED_FOR, counted=59, over=59),
        replace(WAITED_FOR, epoch=2, over=100),
        replace(WAITED_FOR, epoch=0, over=100),
    ],
    ids=["too few", "of a later epoch", "of an earlier one"],
)
def test_nothing_is_decided_on(samples: Samples) -> None:
    assert RULE.decide(START, samples, FACTS, now_ms=LATER_MS) is None


def test_nothing_is_decided_before_its_time() -> None:
    assert RULE.decide(START, replace(WAITED_FOR, over=100), FACTS, now_ms=LATER_MS - 1) is None


def test_two_gateways_that_decide_on_one_record_decide_once() -> None:
    """The second one finds another epoch."""
    first = decided(replace(WAITED_FOR, over=60))
    assert RULE.decide(first, replace(WAITED_FOR, over=60), FACTS, now_ms=10 * LATER_MS) is None


def test_where_batch_does_not_run_it_is_not_to_blame() -> None:
    """Interactive alone is over its target: to cut batch would help nobody, and starve it later."""
    assert decided(replace(MET, over=60, batch_ran=0)).batch == 80


def test_the_ceiling_of_all_is_cut_late_and_only_where_as_many_run() -> None:
    full, half = 100 * START.sequences, 50 * START.sequences
    assert decided(replace(MET, over=20, running=full)).sequences == START.sequences
    assert decided(replace(MET, over=60, running=half)).sequences == START.sequences
    assert decided(replace(MET, over=60, running=full)).sequences == 136


def test_the_ceiling_of_all_grows_where_interactive_waits_for_it() -> None:
    assert decided(replace(MET, bound=10)).sequences == 164


def test_the_ceiling_of_all_stays_above_batch() -> None:
    """Room for interactive that comes, a quarter of batch's, or to what the engine runs."""
    learned = replace(START, sequences=60, batch=80)
    assert RULE.ceilings(learned, FACTS, now_ms=0).sequences_max == 100
    small = EngineFacts(running_max=90)
    assert RULE.ceilings(learned, small, now_ms=0).sequences_max == 90


def test_nothing_grows_beyond_what_the_engine_runs() -> None:
    small = EngineFacts(running_max=81)
    samples = replace(WAITED_FOR, bound=10)
    learned = RULE.begin(small, now_ms=0, batch=80)
    after = RULE.decide(learned, samples, small, now_ms=LATER_MS)
    assert after is not None
    assert (after.batch, after.sequences) == (81, 81)


def test_what_was_cut_comes_back_fast_up_to_where_it_was() -> None:
    """A slow patch of long prompts is over after a minute; so is what it did."""
    learned, now_ms = replace(START, high=80), LATER_MS
    sizes = []
    for over in [100] * 4 + [0] * 6:
        samples = replace(WAITED_FOR, epoch=learned.epoch, over=over, interactive_ms=now_ms)
        learned = decided(samples, learned, now_ms)
        now_ms = learned.since_ms + RULE.decide_ms
        sizes.append(learned.batch)
    assert sizes == [68, 57, 48, 40, 50, 57, 62, 66, 69, 71]


def test_what_was_never_seen_to_do_well_does_not_come_back_fast() -> None:
    """A ceiling to begin with is a guess, and one that was too high is not tried again at once."""
    cut = decided(replace(WAITED_FOR, over=60))
    now_ms = cut.since_ms + RULE.decide_ms
    assert (cut.batch, cut.high) == (68, 1)
    assert decided(replace(WAITED_FOR, epoch=2, interactive_ms=now_ms), cut, now_ms).batch == 70
    assert decided(WAITED_FOR).high == 80


def test_where_it_was_cut_on_its_way_back_it_grows_slowly() -> None:
    """What it was before is no longer believed: the worker has become slower."""
    learned = replace(START, batch=50, high=80)
    cut = decided(replace(WAITED_FOR, over=7), learned)
    assert (cut.batch, cut.high) == (46, 65)
    falling = decided(replace(WAITED_FOR, over=7), replace(learned, is_falling=True))
    assert (falling.batch, falling.high) == (46, 80)


def test_a_target_that_can_never_be_met_leaves_one() -> None:
    learned, now_ms = START, LATER_MS
    for _ in range(60):
        samples = Samples(
            learned.epoch, counted=100, over=100, running=100 * learned.sequences, looks=10,
            bound=10, batch_bound=10, batch_ran=10, interactive_ms=now_ms,
        )  # fmt: skip
        learned = decided(samples, learned, now_ms)
        now_ms = learned.since_ms + RULE.decide_ms
    found = RULE.ceilings(learned, FACTS, now_ms=now_ms)
    assert (found.batch_max, found.sequences_max) == (1, 1)


def test_from_one_it_finds_its_way_up_again() -> None:
    """With one at a time a minute has six samples."""
    learned, now_ms = replace(START, batch=1, sequences=2, high=1), LATER_MS
    few = replace(WAITED_FOR, counted=8)
    for _ in range(10):
        learned = decided(replace(few, epoch=learned.epoch, interactive_ms=now_ms), learned, now_ms)
        now_ms += RULE.decide_ms
        few = replace(few, counted=max(8, learned.batch))
    assert learned.batch == 11


def test_what_is_slow_on_a_worker_that_is_not_full_counts_for_nothing() -> None:
    """Of 80, fewer than 54."""
    now_ms = START.since_ms + 10_000
    slow = {"began_ms": now_ms - 10_000, "ended_ms": now_ms, "tokens": 100}
    assert RULE.stretch(START, **slow, running=53) == Samples(1)
    assert RULE.stretch(START, **slow, running=54) == Samples(1, counted=1, over=1, running=54)


def test_a_stretch_at_the_target_meets_it() -> None:
    at = {"began_ms": START.since_ms, "tokens": 100, "running": 80}
    met = RULE.stretch(START, ended_ms=START.since_ms + 4_000, **at)
    over = RULE.stretch(START, ended_ms=START.since_ms + 4_001, **at)
    assert (met.over, over.over) == (0, 1)


def test_a_stretch_of_a_few_tokens_tells_of_a_neighbours_prompt() -> None:
    at = {"began_ms": START.since_ms, "ended_ms": START.since_ms + 1_000, "running": 80}
    assert RULE.stretch(START, tokens=15, **at) == Samples(1)
    assert RULE.stretch(START, tokens=16, **at).over == 1


def test_a_ceiling_is_waited_for_where_nearly_as_many_run() -> None:
    """Not where memory is what is short, nor where nobody waits."""
    asks = {"waiting": 0, "batch_waiting": 3, "batch_running": 40}
    assert RULE.look(START, running=72, **asks).batch_bound == 1
    assert RULE.look(START, running=71, **asks).batch_bound == 0
    assert RULE.look(START, running=80, **{**asks, "batch_waiting": 0}).batch_bound == 0
    assert RULE.look(START, running=144, **{**asks, "waiting": 1}).bound == 1
    assert RULE.look(START, running=143, **{**asks, "waiting": 1}).bound == 0


def test_a_restarted_worker_keeps_its_ceilings_and_is_not_judged_while_it_is_cold() -> None:
    """Q09: also where it registers again."""
    after = RULE.restarted(START, now_ms=500_000)
    assert (after.batch, after.sequences) == (80, 160)
    assert RULE.decide(after, replace(WAITED_FOR, over=100), FACTS, now_ms=600_000) is None
    cold = RULE.stretch(after, began_ms=520_000, ended_ms=530_000, tokens=20, running=90)
    assert cold == Samples(after.epoch)


def test_a_restart_that_two_gateways_see_is_one() -> None:
    after = RULE.restarted(START, now_ms=500_000)
    assert RULE.restarted(after, now_ms=502_000) is after
    assert RULE.restarted(after, now_ms=520_000).epoch == after.epoch + 1


def test_a_worker_that_is_cold_stays_so_when_interactive_goes_or_comes() -> None:
    """Also the first decision of all, where none was seen yet."""
    now_ms = 500_000
    begun = RULE.begin(FACTS, now_ms=now_ms)
    alone = decided(Samples(1), begun, now_ms)
    assert (alone.is_alone, alone.since_ms) == (True, begun.since_ms)
    beside = decided(Samples(2, interactive_ms=now_ms), alone, now_ms)
    assert (beside.is_alone, beside.since_ms) == (False, begun.since_ms)


def test_a_clock_that_stepped_back_holds_nothing_up() -> None:
    """Nothing would be learned until it is where it was."""
    learned = replace(START, since_ms=LATER_MS + AHEAD_MS_MAX)
    assert RULE.decide(learned, WAITED_FOR, FACTS, now_ms=LATER_MS) is None
    ahead = replace(learned, since_ms=learned.since_ms + 1)
    assert decided(WAITED_FOR, ahead).since_ms == LATER_MS


def test_batchs_ceiling_is_no_more_than_the_engine_runs_now() -> None:
    """What was learned is another engine's, or that of other flags."""
    found = RULE.ceilings(START, EngineFacts(running_max=16), now_ms=0)
    assert (found.batch_max, found.sequences_max) == (16, 16)


def test_batch_alone_has_a_target_and_a_ceiling_of_its_own() -> None:
    """After a minute without interactive; what was learned beside it is kept."""
    now_ms = LATER_MS + RULE.alone_after_ms
    alone = decided(WAITED_FOR, now_ms=now_ms)
    assert (alone.is_alone, alone.batch_max) == (True, 80)
    at = {"began_ms": now_ms, "tokens": 100, "running": 80}
    assert RULE.stretch(alone, ended_ms=now_ms + 6_000, **at).over == 0
    assert RULE.stretch(alone, ended_ms=now_ms + 6_001, **at).over == 1
    grown = decided(replace(WAITED_FOR, epoch=alone.epoch), alone, now_ms + RULE.decide_ms)
    assert (grown.batch, grown.alone) == (80, 84)


def test_interactive_that_comes_to_batch_alone_does_not_wait_for_it_to_shrink() -> None:
    alone = replace(START, is_alone=True, alone=200)
    now_ms = LATER_MS
    after = decided(replace(MET, counted=0), alone, now_ms)
    found = RULE.ceilings(after, FACTS, now_ms=now_ms)
    assert (found.batch_max, found.sequences_max) == (80, 250)
    assert RULE.ceilings(after, FACTS, now_ms=after.drains_ms).sequences_max == 160

"""The latency ceilings of a worker, learned from TPOT.

Batch's ceiling grows by little while it keeps batch waiting and nearly all that runs meets the
target, and is cut when too many miss it (additive increase, multiplicative decrease). The ceiling
of all is for a worker that interactive alone overloads: an interactive request that waits misses
its TTFT for certain, and one that runs beside many misses its TPOT perhaps, so it is cut late.

What is learned belongs to a worker and is shared by all gateways: each adds its `Samples` to one
`learned.Record`; whoever finds it ripe decides, and begins an epoch with an empty record. Whoever
decides second finds another epoch than it decided on, and changes nothing.
"""

from dataclasses import dataclass, replace

from gateway.domain.queue.ceilings import KEPT_FREE, START, Ceilings, EngineFacts, memory_ceiling
from gateway.domain.queue.learned import Learned
from gateway.domain.queue.samples import Samples

SHOWS_MS_MAX = 60_000
AHEAD_MS_MAX = 120_000
"""Nothing is decided to count from later than this: else the clock has stepped back."""
FEW = 8
"""Samples, at least: of a worker that runs one at a time there are no more in a minute."""


@dataclass(frozen=True)
class LatencyRule:
    """How the ceilings follow TPOT. The defaults are the interactive class's target, and what a
    simulated replica was found to need (docs/queue.md)."""

    tpot_us: int = 40_000
    alone_tpot_us: int = 60_000
    """Batch's own target, while there is no interactive."""
    alone_after_ms: int = 60_000
    """So long after interactive was last seen there is none."""
    over_permille: int = 50
    """More of the samples than this over the target: a cut. 50 for a target on the p95."""
    few_permille: int = 35
    """At most so many over it: growth. Between the two all stays."""
    far_permille: int = 250
    """More than this: a larger cut, and one of the ceiling of all."""
    cut_permille: int = 930
    """What a cut leaves."""
    cut_far_permille: int = 850
    grow_permille: int = 30
    alone_grow_permille: int = 60
    """Batch alone: nobody is hurt by trying."""
    free_permille: int = 250
    """What the ceiling of all lies above batch's, at least."""
    samples_min: int = 60
    decide_ms: int = 10_000
    """From one decision to the next, at least."""
    warm_ms: int = 30_000
    """After a worker's start nothing is learned: until its cache is warm all is slow."""
    stretch_ms: int = 10_000
    """A running request is a sample each time it has run for so long, and at its end."""
    stretch_tokens_min: int = 16
    """Shorter stretches tell of one neighbour's prompt, not of how many run."""

    def begin(
        self, facts: EngineFacts, *, now_ms: int, batch: int = START, epoch: int = 1
    ) -> Learned:
        """A worker of which nothing was seen, on which batch may stop at `batch`."""
        batch = facts.bounded(batch)
        return Learned(
            epoch, now_ms + self.warm_ms, sequences=facts.bounded(KEPT_FREE * batch), batch=batch,
            alone=batch, is_alone=False, high=1,
        )  # fmt: skip

    def restarted(self, learned: Learned, *, now_ms: int) -> Learned:
        """The worker began anew, as the same engine: what is known of it holds. Nothing changes
        where somebody has just seen the same."""
        if learned.since_ms > now_ms + self.warm_ms // 2:
            return learned
        return replace(learned, epoch=learned.epoch + 1, since_ms=now_ms + self.warm_ms)

    def stretch(
        self, learned: Learned, *, began_ms: int, ended_ms: int, tokens: int, running: int
    ) -> Samples:
        """A stretch of an answer: `tokens` after the one at `began_ms`, the last at `ended_ms`,
        where `running` sequences ran then. Much fewer than batch's ceiling say nothing about it,
        so what is slow on a worker that is not full cuts nothing."""
        if (
            began_ms < learned.since_ms
            or tokens < self.stretch_tokens_min
            or running * 3 < learned.batch_max * 2
        ):
            return Samples(learned.epoch)
        target_us = self.alone_tpot_us if learned.is_alone else self.tpot_us
        is_over = (ended_ms - began_ms) * 1000 > target_us * tokens
        return Samples(learned.epoch, counted=1, over=int(is_over), running=running)

    def look(
        self,
        learned: Learned,
        *,
        waiting: int,
        batch_waiting: int,
        running: int,
        batch_running: int,
    ) -> Samples:
        """Who waits in the pool, how many sequences run on the worker, and how many of batch this
        gateway has there. A ceiling is waited for where nearly as many run: a request of several
        sequences finds no room before it is reached, and where memory is what is short fewer
        run."""
        return Samples(
            learned.epoch,
            looks=1,
            bound=int(waiting > 0 and running * 10 >= learned.sequences * 9),
            batch_bound=int(batch_waiting > 0 and running * 10 >= learned.batch_max * 9),
            batch_ran=int(batch_running > 0),
        )

    def decide(
        self, learned: Learned, samples: Samples, facts: EngineFacts, *, now_ms: int
    ) -> Learned | None:
        """What is known after these samples; None where nothing is to be decided yet."""
        if samples.epoch != learned.epoch:
            return None
        if learned.since_ms > now_ms + AHEAD_MS_MAX:
            return replace(learned, epoch=learned.epoch + 1, since_ms=now_ms)
        is_alone = now_ms - samples.interactive_ms >= self.alone_after_ms
        if is_alone != learned.is_alone:
            return self._switched(learned, now_ms, is_alone=is_alone)
        enough = min(self.samples_min, max(FEW, learned.batch_max))
        if samples.counted < enough or now_ms < learned.since_ms + self.decide_ms:
            return None
        after = replace(learned, epoch=learned.epoch + 1, since_ms=now_ms, is_falling=False)
        # One more than the share may be chance, which matters where samples are few.
        if (samples.over - 1) * 1000 > self.over_permille * samples.counted:
            return self._cut(after, samples, _high(learned))
        return self._grown(after, samples, facts)

    def ceilings(self, learned: Learned, facts: EngineFacts, *, now_ms: int) -> Ceilings:
        """What the worker may hold now."""
        held = learned.alone if learned.is_alone or now_ms < learned.drains_ms else 0
        return Ceilings(
            facts.bounded(max(learned.sequences, self._above(max(held, learned.batch_max)))),
            facts.bounded(learned.batch_max),
            memory_ceiling(facts),
        )

    def _switched(self, learned: Learned, now_ms: int, *, is_alone: bool) -> Learned:
        """Interactive came, or has gone. What ran beside batch's other ceiling says nothing of
        this one, a worker that is not judged yet is not judged now either, and interactive does
        not wait until batch has shrunk."""
        drains_ms = 0 if is_alone else now_ms + SHOWS_MS_MAX
        after = replace(
            learned, epoch=learned.epoch + 1, since_ms=max(now_ms, learned.since_ms),
            is_alone=is_alone, drains_ms=drains_ms, alone=max(learned.alone, learned.batch),
        )  # fmt: skip
        return replace(after, high=after.batch_max)

    def _cut(self, learned: Learned, samples: Samples, high: int) -> Learned:
        is_far = samples.over * 1000 > self.far_permille * samples.counted
        kept = self.cut_far_permille if is_far else self.cut_permille
        # What is over the new ceiling leaves as requests end; twice that is waited.
        stay_ms = samples.stay_ms // max(1, samples.ended)
        shows_ms = min(SHOWS_MS_MAX, 2 * stay_ms * (1000 - kept) // 1000)
        after = replace(learned, since_ms=learned.since_ms + shows_ms)
        is_full = samples.running * 10 >= learned.sequences * 9 * samples.counted
        if is_far and is_full and not learned.is_alone:
            after = replace(after, sequences=_less(learned.sequences, kept))
        if not samples.batch_ran:
            return after
        size = learned.batch_max
        return replace(_with_batch(after, _less(size, kept)), high=high, is_falling=True)

    def _grown(self, learned: Learned, samples: Samples, facts: EngineFacts) -> Learned:
        after = learned
        # Neither of the two grows but on evidence from where it is: nobody waits, nothing is known.
        if samples.bound * 2 >= samples.looks > 0:
            size = learned.sequences
            more = max(1, size * self.grow_permille // 1000)
            after = replace(after, sequences=facts.bounded(size + more))
        are_few = samples.over * 1000 <= self.few_permille * samples.counted
        if are_few and samples.batch_bound * 2 >= samples.looks > 0:
            size = learned.batch_max
            pace = self.alone_grow_permille if learned.is_alone else self.grow_permille
            more = max(1, size * pace // 1000, (learned.high - size) // 4)
            high = max(learned.high, size)
            after = replace(_with_batch(after, facts.bounded(size + more)), high=high)
        return after

    def _above(self, batch: int) -> int:
        return batch * (1000 + self.free_permille) // 1000


def _less(size: int, kept_permille: int) -> int:
    """One at least: a target that can never be met still lets requests through."""
    return max(1, min(size - 1, size * kept_permille // 1000))


def _high(learned: Learned) -> int:
    """What is still believed of the highest ceiling once batch's is cut now. Cut on its way back up
    to there, half of it is; on its way down nothing new is known."""
    if learned.is_falling or learned.batch_max >= learned.high:
        return learned.high
    return (learned.batch_max + learned.high) // 2


def _with_batch(learned: Learned, size: int) -> Learned:
    return replace(learned, alone=size) if learned.is_alone else replace(learned, batch=size)

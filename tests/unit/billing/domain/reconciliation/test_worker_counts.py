"""REC-3's sums against the same rules said plainly, on drawn samples and attempts; and what they
cost."""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby, pairwise
from types import FrameType
from typing import Any

import pytest

from billing.domain.reconciliation.engines import Meanwhile, Sample, check_engines
from billing.domain.reconciliation.worker_counts import EDGE_MS, LATE_MS, Stretch, WorkerCounts


@dataclass(frozen=True)
class Stay:
    """An attempt."""

    started_at_ms: int
    ended_at_ms: int
    prompt_tokens: int
    output_tokens: int
    is_exact: bool = True
    worker_id: str = "w"


def meets(stay: Stay, sample: Sample) -> bool:
    late_ms = EDGE_MS if stay.is_exact else LATE_MS
    return (
        stay.started_at_ms - EDGE_MS <= sample.taken_at_ms
        and sample.asked_at_ms < stay.ended_at_ms + late_ms
    )


def of_life(samples: list[Sample], stays: list[Stay]) -> list[tuple[Stretch, list[Stay]]]:
    """What a life says, stretch by stretch, and whose each took."""
    quiet = [each for each in samples if not any(meets(stay, each) for stay in stays)]
    cuts = {samples[0], *quiet[:1], *quiet[-1:], samples[-1]}
    ends = sorted(cuts, key=lambda each: each.taken_at_ms)
    return [between(one, two, stays) for one, two in pairwise(ends)]


def between(one: Sample, two: Sample, stays: list[Stay]) -> tuple[Stretch, list[Stay]]:
    edge = [stay for stay in stays if meets(stay, one) or meets(stay, two)]
    sure = [
        stay
        for stay in stays
        if stay not in edge
        and stay.started_at_ms > one.taken_at_ms
        and stay.ended_at_ms < two.asked_at_ms
    ]

    def sums(found: list[Stay]) -> tuple[int, int]:
        return sum(each.prompt_tokens for each in found), sum(each.output_tokens for each in found)

    rose = two.prompt_tokens - one.prompt_tokens, two.output_tokens - one.output_tokens
    is_exact = all(each.is_exact for each in sure + edge)
    return Stretch(one.life, rose, sums(sure), sums(edge), is_exact), sure + edge


def drawn(rng: random.Random) -> tuple[list[Sample], list[Stay]]:
    """Two minutes of a worker with up to six lives, and attempts of any length on it."""
    samples: list[Sample] = []
    life, at_ms, prompt, output = 1, 0, 0, 0
    for _ in range(rng.randrange(2, 24)):
        if rng.random() < 0.2:
            life, prompt, output = life + 1, 0, 0
        at_ms += rng.randrange(1, 8_000)
        took_ms = rng.randrange(800)
        samples.append(Sample("w", life, at_ms, at_ms + took_ms, prompt, output))
        at_ms, prompt, output = (
            at_ms + took_ms,
            prompt + rng.randrange(20),
            output + rng.randrange(9),
        )
    stays = []
    for number in range(rng.choice((0, 1, 3, 12))):
        started_ms = rng.randrange(-5_000, at_ms + 5_000)
        lasted_ms = rng.choice((0, rng.randrange(4_000), rng.randrange(70_000)))
        stays.append(
            Stay(started_ms, started_ms + lasted_ms, number + 1, rng.randrange(99), number % 5 != 4)
        )
    return samples, stays


@pytest.mark.parametrize("seed", range(400))
def test_sums_are_those_of_the_rules(seed: int) -> None:
    """Each attempt that a life witnessed is sure or at the edge, and of one of its stretches where
    it is sure; what no life did is left over, once, however many lives an attempt went through."""
    samples, stays = drawn(random.Random(seed))  # noqa: S311
    counts = WorkerCounts()
    for sample in samples:
        counts.see(sample)
    for stay in stays:
        counts.add(
            stay.started_at_ms,
            stay.ended_at_ms,
            stay.prompt_tokens,
            stay.output_tokens,
            is_exact=stay.is_exact,
        )
    lives: dict[int, list[Sample]] = {}
    for sample in samples:
        lives.setdefault(sample.life, []).append(sample)
    expected = [
        each for found in lives.values() if len(found) > 1 for each in of_life(found, stays)
    ]
    witnessed = {stay for _, found in expected for stay in found}
    left = [stay for stay in stays if stay not in witnessed]
    found, unwitnessed = counts.stretches()
    assert found == [stretch for stretch, _ in expected]
    assert unwitnessed == sum(stay.prompt_tokens + stay.output_tokens for stay in left)
    assert counts.lives == len(lives)


def test_drawn_lives_are_of_every_kind() -> None:
    """Quiet and busy ones, some in one stretch and some in three, and attempts that went through
    more than one life."""
    busy = quiet = through = 0
    stretches: list[int] = []
    for seed in range(400):
        samples, stays = drawn(random.Random(seed))  # noqa: S311
        firsts = [two.asked_at_ms for one, two in pairwise(samples) if one.life != two.life]
        through += any(
            stay.started_at_ms < at < stay.ended_at_ms for stay in stays for at in firsts
        )
        met = [sum(meets(stay, each) for stay in stays) for each in samples]
        busy += met.count(0) < 2
        quiet += met.count(0) > 1
        stretches += [
            len(of_life(list(life), stays)) for _, life in groupby(samples, lambda each: each.life)
        ]
    assert min(busy, quiet, through) > 50
    assert min(stretches.count(number) for number in (1, 2, 3)) > 10


def steps(hours: float) -> int:
    """Instructions of a check of one worker with ten attempts a second, sampled each 5 s. They are
    counted, since time differs from run to run by more than what is to be seen."""
    stays = [
        Stay(number * 100, number * 100 + 6_000, 10, 20) for number in range(int(hours * 36_000))
    ]
    samples = [
        Sample("w", 1, at * 5_000, at * 5_000, at * 500, at * 1_000)
        for at in range(int(hours * 720))
    ]
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert check_engines(samples, stays, Meanwhile(0, 1)).ok
    finally:
        sys.settrace(before)
    return count


def test_ten_times_the_time_costs_ten_times_as_much() -> None:
    """Ten times the attempts and the samples: not their product."""
    assert steps(0.3) < 15 * steps(0.03)

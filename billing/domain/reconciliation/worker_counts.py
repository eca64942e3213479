"""One worker's samples and what ran between them, added up as it comes: no attempt is kept.

An attempt meets the samples that were taken while it ran, give or take EDGE_MS: its engine may have
counted it before such a sample or after it. That is a range of samples, found by bisection, and all
sums are differences of running totals over it. So n attempts and m samples cost n log m + m.

A life is compared from its first sample to its last, in up to three stretches: it is cut at the
first and at the last quiet sample, which no attempt met. What was open at an end of the period then
excuses nothing between the two, and what is between the two nothing before or after.
"""

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

EDGE_MS = 2_000
"""What ends so near to a sample may be counted before it or after it: clocks differ by a second."""
LATE_MS = 10_000
"""So long after it ended for its gateway an attempt may be counted that was broken off: its engine
hears of that later, and in the midst of a step."""


class Sample(NamedTuple):
    """A worker's counters, asked for and told at these instants. `life` grows with each restart."""

    worker_id: str
    life: int
    asked_at_ms: int
    taken_at_ms: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Stretch:
    """What a worker counted between two samples of one life, and what is recorded there. Counts are
    prompt and output."""

    life: int
    rose: tuple[int, int]
    sure: tuple[int, int]
    """Of attempts that can have been counted nowhere but between the two."""
    at_the_edge: tuple[int, int]
    """Of attempts that met one of the two."""
    is_exact: bool
    """Whether every count is the engine's own last word."""


class WorkerCounts:
    """Samples come first and in order of `taken_at_ms`, all of them; then attempts, in any."""

    def __init__(self) -> None:
        self._lives = array("q")
        self._asked, self._taken = array("q"), array("q")
        self._counters = array("q"), array("q")
        self._is_ready = False
        self._tokens = 0

    def see(self, sample: Sample) -> None:
        """Its next sample."""
        self._lives.append(sample.life)
        self._asked.append(sample.asked_at_ms)
        self._taken.append(sample.taken_at_ms)
        self._counters[0].append(sample.prompt_tokens)
        self._counters[1].append(sample.output_tokens)

    @property
    def lives(self) -> int:
        """How many were sampled at all."""
        return sum(1 for _ in groupby(self._lives))

    def add(
        self, started_ms: int, ended_ms: int, prompt: int, output: int, *, is_exact: bool
    ) -> None:
        """An attempt, as its gateway saw it begin and end."""
        if not self._is_ready:
            self._make_ready()
        late_ms = EDGE_MS if is_exact else LATE_MS
        first = bisect_left(self._taken, min(started_ms, ended_ms) - EDGE_MS)
        after = bisect_left(self._asked, ended_ms + late_ms)
        after = max(first, after)
        for number, size in enumerate((prompt, output, 0 if is_exact else 1)):
            self._ended[number][after] += size
            if first != after:
                self._met[number][first] += size
                self._met[number][after] -= size
        self._tokens += prompt + output
        if first == after:
            return
        self._meeting[first] += 1
        self._meeting[after] -= 1
        # Lives that it met whole, and pairs of lives between which it went on.
        whole = bisect_left(self._firsts, first), bisect_left(self._lasts, after)
        if whole[0] < whole[1]:
            for number, size in enumerate((prompt, output)):
                self._whole[number][whole[0]] += size
                self._whole[number][whole[1]] -= size
        across = bisect_left(self._lasts, first), bisect_left(self._firsts, after) - 1
        if across[0] < across[1]:
            self._across[across[0]] += prompt + output
            self._across[across[1]] -= prompt + output

    def _make_ready(self) -> None:
        """Lives with fewer than two samples witness nothing."""
        samples = len(self._taken)
        runs = [list(run) for _, run in groupby(range(samples), self._lives.__getitem__)]
        self._firsts = array("q", [run[0] for run in runs if len(run) > 1])
        self._lasts = array("q", [run[-1] for run in runs if len(run) > 1])
        self._meeting = _zeros(samples)
        self._ended = _zeros(samples), _zeros(samples), _zeros(samples)
        self._met = _zeros(samples), _zeros(samples), _zeros(samples)
        self._whole = _zeros(len(runs)), _zeros(len(runs))
        self._across = _zeros(len(runs))
        self._is_ready = True

    def stretches(self) -> tuple[list[Stretch], int]:
        """Those of each life that has two samples, in order and without a gap; and the tokens of
        attempts that are in none of them."""
        if not self._is_ready:
            self._make_ready()
        meeting = list(accumulate(self._meeting))
        ended = [list(accumulate(sizes)) for sizes in self._ended]
        met = [list(accumulate(sizes)) for sizes in self._met]
        whole = [list(accumulate(sizes)) for sizes in self._whole]
        across = list(accumulate(self._across))
        found: list[Stretch] = []
        witnessed = 0
        for number, (first, last) in enumerate(zip(self._firsts, self._lasts, strict=True)):
            if number:
                witnessed -= across[number - 1]  # it is at the edge of two lives
            quiet = [at for at in range(first, last + 1) if not meeting[at]]
            for one, two in pairwise(sorted({first, *quiet[:1], *quiet[-1:], last})):
                within = [sizes[two] - sizes[one] for sizes in ended]
                # An attempt that met the whole life has left no sample quiet.
                both = [sizes[number] for sizes in whole]
                edge = [met[kind][one] + met[kind][two] - both[kind] for kind in (0, 1)]
                sure = [within[kind] - met[kind][one] + both[kind] for kind in (0, 1)]
                found.append(
                    Stretch(
                        self._lives[one],
                        (self._rose(0, one, two), self._rose(1, one, two)),
                        (sure[0], sure[1]),
                        (edge[0], edge[1]),
                        is_exact=not within[2] + met[2][two],
                    )
                )
                witnessed += sum(sure) + sum(edge)
        return found, self._tokens - witnessed

    def _rose(self, kind: int, one: int, two: int) -> int:
        return self._counters[kind][two] - self._counters[kind][one]


def _zeros(count: int) -> "array[int]":
    return array("q", bytes(8 * (count + 1)))

"""The knee: the greatest rate at which a target still meets its targets.

Pass: attainment of at least 95 %, a queue that does not grow, a run that proves something. Rates
double up (or halve down) from the first until a pass lies under a fail; the gap is then halved
until it is under 5 % of the pass. Pure: `next_rate` says what to run, `observe` takes the results.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec

ATTAINMENT_MIN = 0.95
PRECISION = 0.05
# Two-sided 95 % quantiles of Student's t for 1, 2, … degrees of freedom.
_STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL = 1.96


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run at one rate with one seed, as far as the search cares."""

    seed: int
    attainment_share: float
    goodput_rps: float
    queue_grows: bool = False
    refused: bool = False


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """One rate and what its seeds said."""

    rate_rps: float
    trials: list[Trial]
    attainment_share: float
    """Mean over the seeds."""
    attainment_interval_share: tuple[float, float] | None
    """95 % confidence interval of that mean (Student's t over the seeds); None of one seed."""
    goodput_rps: float
    passed: bool
    reason: str
    """Why it did not pass; empty where it did."""


class KneeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Where the knee lies, as far as the search went."""

    knee_rps: float | None
    """The greatest rate that passed under every one that failed; None where none did."""
    failed_rps: float | None
    """The smallest rate that failed; None where none did: the knee is at least `knee_rps`."""
    done: bool
    observed: list[Observed]
    """By rate."""
    passed_above_a_fail_rps: list[float]
    """Rates that passed although a smaller one failed: the curve is not monotone there."""
    limited_by_generator: bool
    """The smallest failing rate failed only because its runs were refused."""


class Knee:
    """A search under way. `seeds` is how many trials each rate is to have."""

    def __init__(
        self,
        start_rps: float,
        *,
        seeds: int = 3,
        attainment_min: float = ATTAINMENT_MIN,
        precision: float = PRECISION,
        min_rps: float | None = None,
        max_rps: float | None = None,
    ) -> None:
        self.seeds = seeds
        self._start = start_rps
        self._attainment_min = attainment_min
        self._precision = precision
        self._min = start_rps / 64 if min_rps is None else min_rps
        self._max = start_rps * 64 if max_rps is None else max_rps
        if not 0 < self._min <= start_rps <= self._max < math.inf:
            raise ValueError("A search needs 0 < min_rps <= start_rps <= max_rps.")
        self._observed: dict[float, Observed] = {}

    def next_rate(self) -> float | None:
        """The rate to run next; None when the search is done."""
        if not self._observed:
            return self._start
        passed, failed = self._bracket()
        if failed is None:
            return None if passed is None else _beyond(passed, min(passed * 2, self._max))
        if passed is None:
            return _beyond(failed, max(failed / 2, self._min))
        if failed - passed <= self._precision * passed:
            return None
        middle = float(f"{(passed + failed) / 2:.3g}")
        return middle if passed < middle < failed else (passed + failed) / 2

    def observe(self, rate_rps: float, trials: Sequence[Trial]) -> Observed:
        """Take the results of a rate, asked for or not; those it had before are replaced.

        Raises:
            ValueError: there is no trial.
        """
        if not trials:
            raise ValueError("A rate is judged by at least one trial.")
        shares = [trial.attainment_share for trial in trials]
        attainment = statistics.fmean(shares)
        reason = self._reason(trials, attainment)
        observed = Observed(
            rate_rps=rate_rps,
            trials=list(trials),
            attainment_share=attainment,
            attainment_interval_share=confidence_interval(shares),
            goodput_rps=statistics.fmean(trial.goodput_rps for trial in trials),
            passed=not reason,
            reason=reason,
        )
        self._observed[rate_rps] = observed
        return observed

    @property
    def result(self) -> KneeResult:
        """What is known so far."""
        passed, failed = self._bracket()
        rates = sorted(self._observed)
        return KneeResult(
            knee_rps=passed,
            failed_rps=failed,
            done=bool(rates) and self.next_rate() is None,
            observed=[self._observed[rate] for rate in rates],
            passed_above_a_fail_rps=[
                rate
                for rate in rates
                if failed is not None and rate > failed and self._observed[rate].passed
            ],
            limited_by_generator=failed is not None and self._only_refused(failed),
        )

    def _bracket(self) -> tuple[float | None, float | None]:
        """The smallest failing rate, and the greatest passing one under it."""
        failing = min((r for r, o in self._observed.items() if not o.passed), default=None)
        passing = [
            rate
            for rate, observed in self._observed.items()
            if observed.passed and (failing is None or rate < failing)
        ]
        return max(passing, default=None), failing

    def _reason(self, trials: Sequence[Trial], attainment: float) -> str:
        # One seed whose queue grows is chance; most of them are the rate.
        growing = sum(trial.queue_grows for trial in trials)
        if any(trial.refused for trial in trials):
            return "the generator did not keep up"
        if attainment < self._attainment_min:
            return f"attainment under {self._attainment_min * 100:g} %"
        if 2 * growing > len(trials):
            return "the queue grows"
        return ""

    def _only_refused(self, rate: float) -> bool:
        kept = [trial for trial in self._observed[rate].trials if not trial.refused]
        if len(kept) == len(self._observed[rate].trials):
            return False
        return not kept or not self._reason(
            kept, statistics.fmean(trial.attainment_share for trial in kept)
        )


def confidence_interval(shares: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean by Student's t, within 0 and 1; None of fewer than two values."""
    freedom = len(shares) - 1
    if freedom < 1:
        return None
    quantile = _STUDENT_T[freedom - 1] if freedom <= len(_STUDENT_T) else _NORMAL
    mean = statistics.fmean(shares)
    half = quantile * statistics.stdev(shares) / math.sqrt(len(shares))
    return max(0.0, mean - half), min(1.0, mean + half)


def _beyond(known: float, proposed: float) -> float | None:
    """The proposal, unless the limit of the search is already known."""
    return None if proposed == known else proposed

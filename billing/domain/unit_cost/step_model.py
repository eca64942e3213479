"""How long a replica works for what an engine did: a linear step model, and its constants.

A model, not a measurement. A decode step of B sequences takes `a0 + a1*B + a2*S` ms, where S is
the sum of their contexts, a prefill step `b0 + b1*N + b2*Q`, where N is its new tokens and Q the
sum of `n * (prefix + n/2)`. Of a decode step each sequence bears its part at `batch`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from billing.domain.unit_cost.quantities import InvalidQuantity, parse_decimal

COEFFICIENT_DECIMALS = 12
BATCH_DEFAULT = 80


class EngineWork(NamedTuple):
    """What engines did, added up over attempts. Whole numbers, so that sums are exact."""

    prefills: int = 0
    """Attempts whose prompt an engine has counted."""
    uncached_tokens: int = 0
    attended_twice: int = 0
    """Twice Q: the sum of `uncached * (2 * cached + uncached)`."""
    output_tokens: int = 0
    token_ms_twice: int = 0
    """Twice the token-milliseconds for which KV was held: the prompt from the start to the end, and
    half of the output from the first token to the end."""
    decode_ms: int = 0
    """From first token to end, of attempts with two tokens or more."""
    decode_gaps: int = 0
    """Output tokens but the first, of the same attempts."""

    def plus(self, other: "EngineWork") -> "EngineWork":
        """Both together."""
        return EngineWork(*(mine + its for mine, its in zip(self, other, strict=True)))


def total_work(works: Iterable[EngineWork]) -> EngineWork:
    """All together."""
    total = EngineWork()
    for work in works:
        total = total.plus(work)
    return total


class WorkParts(NamedTuple):
    """Work in units of a WorkUnits, by what caused it."""

    prefill: int
    decode: int
    kv: int

    @property
    def total(self) -> int:
        """All three."""
        return self.prefill + self.decode + self.kv


@dataclass(frozen=True, kw_only=True)
class StepModel:
    """The constants; times are milliseconds of a replica."""

    name: str
    source: str
    a0: Fraction
    a1: Fraction
    a2: Fraction
    b0: Fraction
    b1: Fraction
    b2: Fraction
    batch: Fraction = Fraction(BATCH_DEFAULT)
    """Sequences that decode together when a replica is busy: they share `a0`."""
    step: Fraction | None = None
    """Mean time of a step while KV was held, by which token-milliseconds become token-steps; None:
    what the records say."""
    scale: Fraction = Fraction(1)
    """By how much real work takes longer than the model says."""
    gpus: Fraction = Fraction(4)
    """Of a replica."""

    def step_of(self, work: EngineWork) -> Fraction:
        """The mean step in ms: the one that was given, the one that was recorded, or where nothing
        was, that of a batch without context."""
        if self.step is not None:
            return self.step
        if work.decode_gaps and work.decode_ms:
            return Fraction(work.decode_ms, work.decode_gaps)
        return self.a0 + self.a1 * self.batch

    def units(self, step_ms: Fraction) -> "WorkUnits":
        """What each count takes, in whole units of which so many are a GPU-millisecond."""
        weights = [
            self.b0,
            self.b1,
            self.b2 / 2,
            self.a0 / self.batch + self.a1,
            self.a2 / (2 * step_ms),
        ]
        scaled = [weight * self.scale * self.gpus for weight in weights]
        per_gpu_ms = lcm(*(weight.denominator for weight in scaled))
        whole = [int(weight * per_gpu_ms) for weight in scaled]
        return WorkUnits(per_gpu_ms, *whole)


class WorkUnits(NamedTuple):
    """A StepModel in whole units of work."""

    per_gpu_ms: int
    """So many units are one GPU-millisecond."""
    prefill: int
    uncached_token: int
    attended_twice: int
    output_token: int
    token_ms_twice: int

    def of(self, work: EngineWork) -> WorkParts:
        """The work of that."""
        return WorkParts(
            prefill=self.prefill * work.prefills
            + self.uncached_token * work.uncached_tokens
            + self.attended_twice * work.attended_twice,
            decode=self.output_token * work.output_tokens,
            kv=self.token_ms_twice * work.token_ms_twice,
        )

    def gpu_ms(self, units: int) -> Fraction:
        """So many units as GPU-milliseconds."""
        return Fraction(units, self.per_gpu_ms)


COEFFICIENTS = ("a0", "a1", "a2", "b0", "b1", "b2", "batch", "step", "scale", "gpus")
_ABOVE_ZERO = frozenset({"batch", "step", "scale", "gpus"})


def with_coefficients(model: StepModel, texts: Mapping[str, str]) -> StepModel:
    """The model with some constants replaced, each a plain decimal text. Raises InvalidQuantity,
    also where no work would take any time."""
    values: dict[str, Fraction] = {}
    for name, text in texts.items():
        if name not in COEFFICIENTS:
            raise InvalidQuantity(f"{name[:20]!r} is none of {', '.join(COEFFICIENTS)}")
        try:
            values[name] = parse_decimal(text, decimals_max=COEFFICIENT_DECIMALS)
        except InvalidQuantity as error:
            raise InvalidQuantity(f"{name} {error}") from error
        if name in _ABOVE_ZERO and not values[name]:
            raise InvalidQuantity(f"{name} must be above 0")
    # Its values are checked above; mypy cannot see which names they have.
    changed = replace(model, **values)  # type: ignore[arg-type]
    if values:
        by_hand = ", ".join(sorted(values))
        changed = replace(changed, source=f"{model.source}; set by hand: {by_hand}")
    if not any((changed.a0, changed.a1, changed.a2, changed.b0, changed.b1, changed.b2)):
        raise InvalidQuantity("a0 to b2 cannot all be 0: then nothing is work")
    if changed.step is None and not changed.a0 + changed.a1:
        raise InvalidQuantity("step must be given where a0 and a1 are 0")
    return changed


_FITTED = (
    "least squares on the 15 points of InferenceMAX's run of 2025-10-29: Llama-3.1-70B FP8, vLLM, "
    "four H100 SXM, concurrency 4 to 64"
)


def _profile(name: str, source: str, *constants: str) -> StepModel:
    a0, a1, a2, b0, b1, b2 = (Fraction(each) for each in constants)
    return StepModel(name=name, source=source, a0=a0, a1=a1, a2=a2, b0=b0, b1=b1, b2=b2)


PROFILES = {
    model.name: model
    for model in (
        _profile(
            *("h100x4-70b-fp8", _FITTED),
            *("11.07", "0.0463", "0.00003", "5.6", "0.0400", "0.000001"),
        ),
        _profile(
            "h100x4-70b-fp8-kvfp8",
            f"{_FITTED}; the reading of an FP8 KV cache scaled by aiconfigurator 0.12.0's tables",
            *("11.07", "0.0463", "0.000021", "5.6", "0.0400", "0.0000009"),
        ),
        _profile(
            "h100x4-70b-fp8-kernel",
            "sum of kernel times in aiconfigurator 0.12.0's tables; optimistic: 16 % under the "
            "measured points",
            *("8.91", "0.0353", "0.00002757", "5.41", "0.0428", "0.00000102"),
        ),
    )
}
DEFAULT_PROFILE = PROFILES["h100x4-70b-fp8"]

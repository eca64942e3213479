"""What a user asks of a workload."""

import math
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal

from backend.loadtest.arrivals import Bursts, OnOff
from backend.loadtest.lengths import Lengths
from backend.loadtest.prefix_templates import PrefixTemplates
from backend.loadtest.workload_error import WorkloadError

Format = Literal["poisson", "bursts", "seedlike", "mooncake"]
MOST_REQUESTS = 2_000_000
_MOST_TENANTS = 100_000


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """One workload. None means the format's own default; what a format does not use is refused,
    not ignored.

    `poisson` and `bursts` draw everything, by default as `seedlike` was drawn; `seedlike` and
    `mooncake` read a trace.
    """

    format: Format
    _: KW_ONLY
    duration_s: float | None = None
    """None: all that the trace has."""
    rate_rps: float | None = None
    """None: the trace's own times."""
    seed: int = 0
    path: Path | None = None
    """The trace."""
    start_s: float = 0.0
    """Where in the trace's own time to begin."""
    keep_gaps: bool | None = None
    """With a rate: scale the trace's own gaps to it (`mooncake` by default) rather than draw
    Poisson times (`seedlike` by default)."""
    tenants: int | None = None
    """How many; 40 drawn ones, one for `mooncake`. `seedlike` names its own."""
    batch_share: float | None = None
    """Of the requests; 0.3 where all is drawn, 0 for `mooncake`. `seedlike` names its own."""
    suffix_lengths: Lengths | None = None
    """Prompt tokens that follow the shared prefix and that no other request has."""
    output_lengths: Lengths | None = None
    prefixes: PrefixTemplates | None = None
    bursts: Bursts | None = None
    """For `bursts`: gaps of a coefficient of variation of 2 by default."""
    max_input_tokens: int | None = None
    """Requests of a trace with longer prompts are left out; drawn prompts are cut to it, and to
    32,768 by default."""

    @property
    def drawn(self) -> bool:
        """Whether there is no trace."""
        return self.format in ("poisson", "bursts")

    def check(self) -> None:
        """Raise WorkloadError for what cannot be meant."""
        self._check_numbers()
        self._check_belongings()
        if isinstance(self.bursts, OnOff) and (self.duration_s or 0) < self.bursts.cycle_s:
            raise WorkloadError(
                f"a run of {self.duration_s:g} s sees no whole cycle of bursts, "
                f"which is {self.bursts.cycle_s:g} s"
            )

    def _check_numbers(self) -> None:
        _need(self.rate_rps, "the rate", "requests per second", above=0)
        _need(self.duration_s, "the duration", "s", above=0)
        _need(self.start_s, "the start", "s", least=0)
        _need(self.tenants, "the number of tenants", "", least=1, most=_MOST_TENANTS)
        _need(self.batch_share, "the batch share", "", least=0, most=1)
        _need(self.max_input_tokens, "the longest prompt", "tokens", least=1)
        expected = (self.rate_rps or 0) * (self.duration_s or 0)
        if expected > MOST_REQUESTS:
            raise WorkloadError(
                f"{self.rate_rps:g} requests per second for {self.duration_s:g} s are "
                f"{expected:.0f} requests; one run has at most {MOST_REQUESTS}"
            )

    def _check_belongings(self) -> None:
        """Each parameter to its format."""
        drawn: dict[str, object] = {
            "lengths of suffixes": self.suffix_lengths,
            "lengths of outputs": self.output_lengths,
            "shared prefixes": self.prefixes,
        }
        needed: dict[str, object]
        refused: dict[str, object]
        if self.drawn:
            needed = {"a rate": self.rate_rps, "a duration": self.duration_s}
            refused = {"a trace": self.path, "a start": self.start_s or None}
            refused["choice of gaps"] = self.keep_gaps
        else:
            needed, refused = {"a trace": self.path}, drawn
            if self.rate_rps is None:
                refused["choice of gaps without a rate"] = self.keep_gaps
        if self.format == "seedlike":
            refused |= {"a number of tenants": self.tenants, "a batch share": self.batch_share}
        if self.format != "bursts":
            refused["bursts"] = self.bursts
        for what, value in needed.items():
            if value is None:
                raise WorkloadError(f"a {self.format} workload needs {what}")
        for what, value in refused.items():
            if value is not None:
                raise WorkloadError(f"a {self.format} workload takes no {what.removeprefix('a ')}")


def _need(
    value: float | None,
    name: str,
    unit: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
) -> None:
    if value is None or (least <= value <= most and value > above and math.isfinite(value)):
        return
    bounds = [f"above {above:g}"] if above > -math.inf else []
    bounds += [f"at least {least:g}"] if least > -math.inf else []
    bounds += [f"at most {most:g}"] if most < math.inf else []
    raise WorkloadError(f"{name} is {f'{value:g} {unit}'.strip()}; it must be {', '.join(bounds)}")

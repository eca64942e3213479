"""What a `weir loadtest` was asked: its options, checked together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from backend.loadtest.http_connection import address_of
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.target_facts import shown_url
from backend.loadtest.workload import WorkloadError, WorkloadSpec
from backend.simulated.profiles import PROFILES
from backend.simulated.scheduler_options import flags_of, shown_flags

DATA_DIR_DEFAULT = Path(".weir")
SPEC_FIELDS = (
    "path", "rate_rps", "duration_s", "start_s", "seed", "suffix_lengths", "output_lengths",
    "prefixes", "bursts", "tenants", "batch_share", "max_input_tokens", "keep_gaps",
)  # fmt: skip
"""Options that are a workload's own, by the names that WorkloadSpec has for them."""
ONLY_WITH = {
    "api_key": "url",
    "replicas": "virtual",
    "scheduler": "virtual",
    "limits": "data_dir",
    "from_rps": "sweep",
    "to_rps": "sweep",
}
NOT_WITH_VIRTUAL = ("model", "speed", "min_tokens")


@dataclass(frozen=True)
class Request:
    """One `weir loadtest`, as asked. Of `url`, `data_dir` and `virtual` exactly one is not None."""

    url: str | None
    api_key: str | None
    model: str | None
    data_dir: Path | None
    virtual: str | None
    replicas: int
    scheduler: Mapping[str, Any] | None
    """Flags of the replicas of `virtual`, by SGLang's names."""
    speed: float | None
    min_tokens: bool | None
    """Whether to ask for no fewer tokens than planned; None where the target is known to take
    that."""
    timeout_s: float
    limits: Mapping[str, Any] | None
    workload: WorkloadSpec
    warmup_s: float | None
    """None: a fifth of the schedule, at most a minute."""
    seeds: int
    repeats: int
    """How often a run that is void is done again."""
    search: bool
    """Look for the knee; else run `rates`, or the trace's own times where there is none."""
    start_rps: float | None
    from_rps: float | None
    to_rps: float | None
    rates: tuple[float, ...]
    targets: GoodputTargets
    output: Path | None
    output_goal: float | None
    """Output tokens per second to mark in a sweep's plot."""
    as_json: bool

    @property
    def first_workload(self) -> WorkloadSpec:
        """The workload at the first rate that will be run."""
        return replace(self.workload, rate_rps=self.start_rps or next(iter(self.rates), None))

    @property
    def _scheduler(self) -> str:
        if self.virtual is None:
            return ""
        profile = PROFILES[self.virtual]
        return shown_flags(profile, flags_of(profile, self.scheduler or {}))

    @property
    def parameters(self) -> dict[str, str | float]:
        """What was asked, for a report; neither the key nor what is secret in a URL."""
        target = {
            "url": None if self.url is None else shown_url(self.url),
            "data_dir": self.data_dir,
            "virtual": self.virtual,
            "replicas": self.replicas if self.virtual else None,
            "scheduler": self._scheduler or None,
            "limits": None if self.limits is None else msgspec.json.encode(self.limits).decode(),
        }
        load = {
            "workload": self.workload.format,
            **{name: getattr(self.workload, name) for name in SPEC_FIELDS},
        }
        rest = {
            "warmup_s": self.warmup_s,
            "seeds": self.seeds,
            "repeats": self.repeats,
            "sweep": self.search or len(self.rates) > 1,
            "from_rps": self.from_rps,
            "to_rps": self.to_rps,
            "rates": ", ".join(f"{rate:g}" for rate in self.rates),
            "timeout_s": self.timeout_s,
        }
        given = {**target, **load, **rest}
        return {
            name: value if isinstance(value, bool | int | float) else str(value)
            for name, value in given.items()
            if value not in (None, "")
        }

    @property
    def names_lengths(self) -> bool:
        """Whether anything was said of how long prompts and answers are."""
        spec = self.workload
        return any((spec.suffix_lengths, spec.output_lengths, spec.prefixes))


def read_request(given: Mapping[str, Any]) -> Request:
    """The options together. Raises click.UsageError with one line."""
    given = dict(given)
    targets = [name for name in ("url", "data_dir", "virtual") if given[name] is not None]
    if len(targets) > 1:
        raise click.UsageError("give one of --url, --data-dir and --virtual")
    if not targets:
        given["data_dir"] = DATA_DIR_DEFAULT
    _check_company(given)
    if given["url"] is not None:
        _check_service(given["url"], given["api_key"])
    spec = WorkloadSpec(
        format=given["workload_format"], **{name: given[name] for name in SPEC_FIELDS}
    )
    search = given["sweep"] and given["rates"] is None
    rates = given["rates"] or (() if spec.rate_rps is None else (spec.rate_rps,))
    start_rps = (given["from_rps"] or spec.rate_rps) if search else None
    if search:
        _check_search(start_rps, spec.rate_rps, given["from_rps"], given["to_rps"])
    asked = Request(
        **{name: given[name] for name in ("url", "api_key", "model", "data_dir", "virtual")},
        scheduler=given["scheduler"],
        **{name: given[name] for name in ("speed", "min_tokens", "timeout_s", "limits")},
        **{
            name: given[name]
            for name in ("from_rps", "to_rps", "targets", "output", "output_goal", "as_json")
        },
        replicas=given["replicas"] or 1,
        workload=spec,
        warmup_s=given["warmup_s"],
        seeds=given["seeds"] or 1,
        repeats=given["repeats"],
        search=search,
        start_rps=start_rps,
        rates=rates,
    )
    try:
        asked.first_workload.check()
    except WorkloadError as error:
        raise click.UsageError(str(error)) from error
    return asked


def _check_company(given: Mapping[str, Any]) -> None:
    """Options that mean something only beside others."""
    for name, wanted in ONLY_WITH.items():
        if given[name] is not None and not given[wanted] and not _from_environment(name):
            raise click.UsageError(f"{_option(name)} goes with {_option(wanted)}")
    for name in NOT_WITH_VIRTUAL:
        if given["virtual"] is not None and given[name] is not None:
            raise click.UsageError(f"{_option(name)} does not go with --virtual")
    if given["rates"] is not None:
        for name in ("from_rps", "to_rps", "rate_rps"):
            if given[name] is not None:
                raise click.UsageError(f"{_option(name)} does not go with --rates")


def _check_service(url: str, api_key: str | None) -> None:
    """Neither is repeated: a URL may hold a password wherever it is mistyped."""
    try:
        address_of(url)
    except ValueError as error:
        raise click.UsageError(f"--url: {error}") from error
    # A header takes no other characters.
    if api_key is not None and not all("!" <= character <= "~" for character in api_key):
        raise click.UsageError("--api-key takes printable ASCII characters without spaces")


def _check_search(
    start: float | None, rate: float | None, lowest: float | None, highest: float | None
) -> None:
    if start is None:
        raise click.UsageError("a search begins somewhere: give --rate or --from, or --rates")
    if rate is not None and lowest is not None:
        raise click.UsageError("a search begins at --rate or at --from, not at both")
    if highest is not None and highest < start:
        raise click.UsageError("--to is below the rate at which the search begins")


def _from_environment(name: str) -> bool:
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source(name)
    return source is click.core.ParameterSource.ENVIRONMENT


def _option(name: str) -> str:
    return "--" + name.removesuffix("_rps").replace("_", "-")

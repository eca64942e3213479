"""Requests that are drawn, as the `seedlike` trace was."""

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Self

import msgspec

from backend.loadtest.arrivals import Bursts, GammaGaps
from backend.loadtest.draft import Draft, tenant_name
from backend.loadtest.lengths import SEEDLIKE_OUTPUT, SEEDLIKE_SUFFIX, Lengths
from backend.loadtest.plan import Segment
from backend.loadtest.prefix_templates import SEEDLIKE_PREFIXES, PrefixTemplates
from backend.loadtest.workload_spec import WorkloadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnParameters:
    """All that a workload without a trace is drawn from, defaults filled in."""

    rate_rps: float
    duration_s: float
    seed: int
    bursts: Bursts | None
    """None: Poisson."""
    tenants: int = 40
    batch_share: float = 0.3
    prefixes: PrefixTemplates = SEEDLIKE_PREFIXES
    suffix_lengths: Lengths = SEEDLIKE_SUFFIX
    output_lengths: Lengths = SEEDLIKE_OUTPUT
    max_input_tokens: int = 32_768

    @classmethod
    def of(cls, spec: WorkloadSpec) -> Self:
        """Of a checked spec."""
        given = {
            "tenants": spec.tenants,
            "batch_share": spec.batch_share,
            "prefixes": spec.prefixes,
            "suffix_lengths": spec.suffix_lengths,
            "output_lengths": spec.output_lengths,
            "max_input_tokens": spec.max_input_tokens,
        }
        return cls(
            rate_rps=float(spec.rate_rps or 0),
            duration_s=float(spec.duration_s or 0),
            seed=spec.seed,
            bursts=(spec.bursts or GammaGaps(2.0)) if spec.format == "bursts" else None,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )

    @property
    def sha256(self) -> str:
        """Of all of them, by name."""
        return sha256(msgspec.json.encode(asdict(self), order="deterministic")).hexdigest()


def drawn_drafts(parameters: DrawnParameters, rng: random.Random) -> Iterator[Draft]:
    """Requests without end.

    A prefix belongs to one tenant, so tenants are as unequal as prefixes are popular; without
    prefixes each request's tenant is drawn evenly. Classes are drawn independently of both.
    """
    tenants, longest = parameters.tenants, parameters.max_input_tokens
    templates = parameters.prefixes.draw(rng)
    # A prefix leaves room for one token of the request's own.
    shared = [_shortened(segment, longest - 1) for segment in templates.segments]
    owners = [rng.randrange(tenants) for _ in shared]
    while True:
        if shared:
            chosen = templates.choose(rng)
            prefix, tenant = shared[chosen], owners[chosen]
        else:
            prefix, tenant = (), rng.randrange(tenants)
        room = longest - sum(segment.tokens for segment in prefix)
        yield Draft(
            tenant=tenant_name(tenant),
            traffic_class="batch" if rng.random() < parameters.batch_share else "interactive",
            shared=prefix,
            suffix_tokens=min(parameters.suffix_lengths.draw(rng), room),
            output_tokens=parameters.output_lengths.draw(rng),
        )


def _shortened(segment: Segment, longest: int) -> tuple[Segment, ...]:
    tokens = min(segment.tokens, longest)
    return (Segment(segment.key, tokens),) if tokens else ()

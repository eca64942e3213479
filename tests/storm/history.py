"""What witnesses saw of a storm: engines, usage records, clients, and the limits' administrator.

All instants are Unix milliseconds of one machine's clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Scope = tuple[str, str]
"""Tenant, and within it `tenant`, `key:<id>`, `model:<model>` or `key:<id>/model:<model>`."""
NO_LIMIT = float("inf")
LOST = "gateway_lost"
"""The outcome of what a killed gateway was running."""


@dataclass(frozen=True)
class Span:
    """One sequence in an engine, by the engine's own account."""

    request_id: str
    """32 hex digits."""
    queued_ms: int
    started_ms: int | None
    """None where it never left the engine's queue."""
    ended_ms: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None = 0


@dataclass(frozen=True)
class Row:
    """A usage record."""

    request_id: str
    tenant: str
    key: str
    model: str
    admitted_ms: int
    """The request's arrival at its gateway: before it was admitted."""
    ended_ms: int
    outcome: str
    prompt_tokens: int
    output_tokens: int
    sequences: int
    engine_final: bool = True
    billable: bool = True
    cost_pico: int | None = None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The four scopes that admitted it."""
        key, model = f"key:{self.key}", f"model:{self.model}"
        names = ("tenant", key, model, f"{key}/{model}")
        return tuple((self.tenant, name) for name in names)


@dataclass(frozen=True)
class Call:
    """What a client asked for and saw."""

    tenant: str
    sent_ms: int
    ended_ms: int
    status: int | None
    """None where no answer came: the client left, or the connection broke."""
    request_id: str | None
    error: str = ""
    """The error's type; for none, what broke the connection."""
    whole: bool = False
    """A 200 was read to its proper end."""
    maximum: int | None = None
    """`max_tokens`; None where none was set."""
    prompts: int = 1
    sequences: int = 1


@dataclass(frozen=True)
class Change:
    """A limit that an administrator set. From `sent_ms` on it may hold, from `everywhere_ms` on it
    does. None is no limit."""

    sent_ms: int
    everywhere_ms: int
    value: int | None


@dataclass(frozen=True)
class InForce:
    """One limit of one scope over time; its first change is its first value."""

    changes: tuple[Change, ...]

    def most(self, from_ms: int, to_ms: int) -> float:
        """The most that may have been allowed at any instant from `from_ms` to `to_ms`."""
        allowed = 0.0
        for number, change in enumerate(self.changes):
            after = self.changes[number + 1 :][:1]
            over = after[0].everywhere_ms if after else NO_LIMIT
            if over >= from_ms and (number == 0 or change.sent_ms <= to_ms):
                allowed = max(allowed, NO_LIMIT if change.value is None else change.value)
        return allowed


Limits = Mapping[Scope, InForce]


@dataclass(frozen=True)
class Finding:
    """Something that must not be."""

    rule: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule} {self.where}: {self.what}"


@dataclass(frozen=True)
class Rest:
    """What was still held once every answer was over and the lease time had passed, or before."""

    zero_after_ms: int | None
    """After the last answer; None where it never came to rest."""
    left: tuple[str, ...] = ()
    """What was not zero at the last look."""
    window_tokens: Mapping[str, int] = field(default_factory=dict)
    """By tenant: tokens that the store counts in the last minute, at rest."""
    spent_pico: Mapping[str, int | None] = field(default_factory=dict)
    """By tenant with a budget: what the store says that the month cost, at rest."""


@dataclass(frozen=True)
class History:
    """A whole storm."""

    spans: Sequence[Span]
    rows: Sequence[Row]
    calls: Sequence[Call]
    sequences: Limits
    tokens: Limits
    requests: Limits
    rest: Rest
    kills: Sequence[int] = ()
    """When gateways were killed: instants right after the signal."""
    lease_ms: int = 10_000
    budgets: Limits = field(default_factory=dict)
    """In pico-units of the tenant's currency."""
    prices: Mapping[str, int] = field(default_factory=dict)
    """By tenant with a budget: pico-units for every token, read or generated."""

    @cached_property
    def spans_of(self) -> dict[str, list[Span]]:
        """Sequences by request."""
        found: dict[str, list[Span]] = defaultdict(list)
        for span in self.spans:
            found[span.request_id].append(span)
        return found

    @cached_property
    def row_of(self) -> dict[str, Row]:
        """The record of each request."""
        return {row.request_id: row for row in self.rows}

    @cached_property
    def call_of(self) -> dict[str, Call]:
        """The call of each request whose id the client was told."""
        return {call.request_id: call for call in self.calls if call.request_id is not None}

    @cached_property
    def unlimited(self) -> frozenset[str]:
        """Tenants some of whose clients set no maximum: whoever left before the answer was never
        told a request id, so this is known by tenant where it is not by request."""
        return frozenset(call.tenant for call in self.calls if call.maximum is None)

    def killed_after(self, row: Row) -> int | None:
        """The first kill that can have hit a request; None where there was none."""
        return min((at_ms for at_ms in self.kills if at_ms >= row.admitted_ms), default=None)

    def has_maximum(self, row: Row) -> bool:
        """Whether the client set `max_tokens`, so that its reservation covers it."""
        call = self.call_of.get(row.request_id)
        return row.tenant not in self.unlimited if call is None else call.maximum is not None

    def by_scope(self, limits: Limits) -> Iterable[tuple[Scope, InForce, list[Row]]]:
        """Each limited scope with its records, in order of arrival."""
        rows = sorted(self.rows, key=lambda row: row.admitted_ms)
        for scope, limit in limits.items():
            yield scope, limit, [row for row in rows if scope in row.scopes]


def shown(scope: Scope) -> str:
    """A scope in a sentence."""
    return f"{scope[0]} ({scope[1]})"

"""What admission is asked, and what it answers."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.scopes import ScopeLimits, ScopeUse


class Kind(StrEnum):
    """What a limit limits; OpenAI's `error.type` of a refusal."""

    SEQUENCES = "sequences"
    REQUESTS = "requests"
    TOKENS = "tokens"
    BUDGET = "insufficient_quota"
    """A month's budget; limit, used and need are then in pico-units of the currency."""


@dataclass(frozen=True)
class Demand:
    """What a request asks of admission.

    `tokens` is prompt + expected output. `floor_tokens` is the least that it must reserve: equal to
    `tokens` where the client set a maximum; only prompt + 1 where it did not, since then an
    expectation above the limit itself is cut down to the limit.
    """

    request_id: str
    sequences: int
    tokens: int
    floor_tokens: int
    cost_pico: int = 0
    """The most that the request may cost, in pico-units of the tenant's currency."""
    month: str = ""
    """The billing month that it counts in, as `2026-11`; empty where it counts in none."""


@dataclass(frozen=True)
class Granted:
    """The lease and the reservation are held. `second` is the window cell that was charged."""

    reserved_tokens: int
    second: int
    uses: tuple[ScopeUse, ...]
    now_ms: int = 0
    """The store's time of the decision."""


@dataclass(frozen=True)
class Refused:
    """Nothing is held. `retry_after_ms` is None where waiting cannot help: the demand exceeds the
    limit itself, or the month's budget leaves no room for it."""

    kind: Kind
    limits: ScopeLimits
    limit: int
    used: int
    need: int
    retry_after_ms: int | None
    uses: tuple[ScopeUse, ...] = ()


@dataclass(frozen=True)
class Paused:
    """Nothing is held: the store was found empty a moment ago, and what ran then is not known.
    From `until_ms` (the store's time) it is."""

    until_ms: int
    now_ms: int


@dataclass(frozen=True)
class MoneyUnknown:
    """Nothing is held: a budget is in force, and what the month has cost is not in the store."""

    month: str


class Settled(StrEnum):
    """What a settlement found."""

    LIVE = "live"
    LAPSED = "lapsed"
    REPEATED = "repeated"
    """Already settled: nothing changed."""
    UNKNOWN = "unknown"
    """No such lease: the store lost it, or it lapsed long ago."""


@dataclass(frozen=True)
class Renewed:
    """What a renewal found, in leases: still held, lapsed and held again, unknown and held again,
    settled long since. `now_ms` is the store's time."""

    renewed: int = 0
    resumed: int = 0
    recreated: int = 0
    over: int = 0
    now_ms: int = 0


@dataclass(frozen=True)
class MonthBegun:
    """A month is tracked since `at_ms` (the store's time). `held` are the requests whose money the
    store accounts for itself: what they cost must not be in the sums given to `finish_month`."""

    at_ms: int
    held: frozenset[str]
